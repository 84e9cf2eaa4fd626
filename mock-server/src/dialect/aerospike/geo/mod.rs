//! GeoJSON bins: what a server makes of the text a client writes.
//!
//! On the wire a value is a flag byte, a count of cells (2), the cells (8 each) and the JSON text;
//! clients send neither flags nor cells. A server answers with its own: a point with the one leaf
//! cell that holds it. Regions (polygons and circles) are stored with the flag that marks them and
//! no cells: which cells cover a region is the choice of a server's covering algorithm, and clients
//! skip them. Text that is no GeoJSON of a known kind is refused.

mod cell;

use kvlab_protocol::aerospike::particle::GeoJson;
use kvlab_protocol::aerospike::result_code::ResultCode;
use serde_json::Value;

/// The flag of a region.
const REGION: u8 = 1;

/// What is stored when a client writes `value`.
///
/// # Errors
/// [`ResultCode::GeoJson`] when it is no GeoJSON.
pub(super) fn stored_form(value: &[u8]) -> Result<Vec<u8>, ResultCode> {
    let sent = GeoJson::decode(value).map_err(|error| error.result_code())?;
    let json: Value = serde_json::from_slice(&sent.json).map_err(|_| ResultCode::GeoJson)?;
    let shape = shape(&json).ok_or(ResultCode::GeoJson)?;
    let (flags, cells) = match shape {
        Shape::Point(point) => (0, vec![cell::leaf(point)]),
        Shape::Region => (REGION, Vec::new()),
    };
    let stored = GeoJson {
        flags,
        cells,
        json: sent.json,
    };
    let mut out = bytes::BytesMut::new();
    stored.encode(&mut out);
    Ok(out.into())
}

/// A place on earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    longitude: f64,
    latitude: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    Point(Point),
    Region,
}

/// The shape of a GeoJSON object; a feature has the shape of its geometry.
fn shape(json: &Value) -> Option<Shape> {
    let kind = json.get("type")?.as_str()?;
    if kind == "Feature" {
        return shape(json.get("geometry")?);
    }
    let coordinates = json.get("coordinates")?;
    match kind {
        "Point" => point(coordinates).map(Shape::Point),
        "Polygon" => polygon(coordinates).map(|()| Shape::Region),
        "MultiPolygon" => {
            each(coordinates, polygon)?;
            Some(Shape::Region)
        }
        "AeroCircle" => {
            let [centre, radius] = coordinates.as_array()?.as_slice() else {
                return None;
            };
            point(centre)?;
            (radius.as_f64()? >= 0.0).then_some(Shape::Region)
        }
        _ => None,
    }
}

fn point(position: &Value) -> Option<Point> {
    let [longitude, latitude, ..] = position.as_array()?.as_slice() else {
        return None;
    };
    let (longitude, latitude) = (longitude.as_f64()?, latitude.as_f64()?);
    let valid = longitude.abs() <= 180.0 && latitude.abs() <= 90.0;
    valid.then_some(Point {
        longitude,
        latitude,
    })
}

/// Rings of at least four positions, the last of which is the first again.
fn polygon(rings: &Value) -> Option<()> {
    each(rings, |ring| {
        each(ring, |position| point(position).map(|_| ()))?;
        let positions = ring.as_array()?;
        (positions.len() >= 4 && positions.first() == positions.last()).then_some(())
    })
}

fn each(list: &Value, check: impl FnMut(&Value) -> Option<()>) -> Option<()> {
    let items = list.as_array()?;
    if items.is_empty() {
        return None;
    }
    items.iter().try_for_each(check)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(json: &str) -> Result<GeoJson, ResultCode> {
        let mut value = vec![0, 0, 0];
        value.extend_from_slice(json.as_bytes());
        let bytes = stored_form(&value)?;
        let geo = GeoJson::decode(&bytes).unwrap();
        assert_eq!(geo.json, json);
        Ok(geo)
    }

    #[test]
    fn a_point_gets_the_cell_of_a_real_server() {
        let json = r#"{"type": "Point", "coordinates": [-80.604333, 28.608389]}"#;
        let geo = stored(json).unwrap();
        assert_eq!((geo.flags, geo.cells), (0, vec![0x88e0_ba39_50f4_a7e5]));
    }

    #[test]
    fn regions_are_marked() {
        let texts = [
            r#"{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]}"#,
            r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[0,1],[1,1],[0,0]]]]}"#,
            r#"{"type":"AeroCircle","coordinates":[[-122.0,37.5],3000.0]}"#,
            r#"{"type":"Feature","geometry":{"type":"AeroCircle","coordinates":[[0,0],1]}}"#,
        ];
        for text in texts {
            let geo = stored(text).unwrap();
            assert_eq!((geo.flags, geo.cells.len()), (REGION, 0), "{text}");
        }
    }

    #[test]
    fn what_is_no_geojson_is_refused() {
        let texts = [
            "nojson",
            "{}",
            r#"{"type":"Point"}"#,
            r#"{"type":"Point","coordinates":[1]}"#,
            r#"{"type":"Point","coordinates":[0,91]}"#,
            r#"{"type":"Line","coordinates":[0,1]}"#,
            r#"{"type":"Polygon","coordinates":[]}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1]]]}"#,
            r#"{"type":"AeroCircle","coordinates":[[0,0],-1]}"#,
        ];
        for text in texts {
            assert_eq!(stored(text), Err(ResultCode::GeoJson), "{text}");
        }
        assert_eq!(stored_form(&[0, 0]), Err(ResultCode::GeoJson));
    }
}
