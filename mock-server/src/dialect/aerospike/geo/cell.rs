//! The S2 leaf cell of a point on earth.
//!
//! The sphere is projected onto the six faces of a cube; on a face, a quadratic transform evens out
//! the cells, and a Hilbert curve of 30 levels numbers them. An id is 3 bits of face, 60 bits of
//! curve position, and a one. Source: the published S2 cell scheme.

use super::Point;

/// Levels of the curve.
const LEVELS: u32 = 30;

/// The leaf cell that holds `point`.
pub(super) fn leaf(point: Point) -> u64 {
    let (latitude, longitude) = (point.latitude.to_radians(), point.longitude.to_radians());
    let direction = [
        latitude.cos() * longitude.cos(),
        latitude.cos() * longitude.sin(),
        latitude.sin(),
    ];
    let (face, u, v) = project(direction);
    let (i, j) = (cell_coordinate(u), cell_coordinate(v));
    (face << 61) | (curve_position(face, i, j) << 1) | 1
}

/// The cube face a direction meets, and where.
fn project([x, y, z]: [f64; 3]) -> (u64, f64, f64) {
    if x.abs() >= y.abs() && x.abs() >= z.abs() {
        if x >= 0.0 {
            (0, y / x, z / x)
        } else {
            (3, z / x, y / x)
        }
    } else if y.abs() >= z.abs() {
        if y >= 0.0 {
            (1, -x / y, z / y)
        } else {
            (4, z / y, -x / y)
        }
    } else if z >= 0.0 {
        (2, -x / z, -y / z)
    } else {
        (5, -y / z, -x / z)
    }
}

/// The column or row of the cell, after the quadratic transform.
fn cell_coordinate(u: f64) -> u64 {
    let s = if u >= 0.0 {
        0.5 * (1.0 + 3.0 * u).sqrt()
    } else {
        1.0 - 0.5 * (1.0 - 3.0 * u).sqrt()
    };
    let cells = (1_u64 << LEVELS) as f64;
    let scaled = (s * cells).floor().clamp(0.0, cells - 1.0);
    // Clamped to 30 bits just above.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let coordinate = scaled as u64;
    coordinate
}

/// Position of each quadrant on the curve, by orientation and by `2 i + j`.
const POSITIONS: [[u64; 4]; 4] = [[0, 1, 3, 2], [0, 3, 1, 2], [2, 3, 1, 0], [2, 1, 3, 0]];

/// How the orientation changes inside each quadrant: bit 0 swaps the axes, bit 1 inverts them.
const TURNS: [usize; 4] = [1, 0, 0, 3];

fn curve_position(face: u64, i: u64, j: u64) -> u64 {
    let mut orientation = usize::from(face & 1 == 1);
    let mut position = 0;
    for level in (0..LEVELS).rev() {
        let quadrant = usize::from(i >> level & 1 == 1) * 2 + usize::from(j >> level & 1 == 1);
        let row = POSITIONS.get(orientation);
        let step = row.and_then(|row| row.get(quadrant)).copied().unwrap_or(0);
        position = position << 2 | step;
        let turn = usize::try_from(step).ok().and_then(|step| TURNS.get(step));
        orientation ^= turn.copied().unwrap_or(0);
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_of_each_face_lies_on_it() {
        let centres = [
            (0.0, 0.0, 0_u64),
            (90.0, 0.0, 1),
            (0.0, 90.0, 2),
            (180.0, 0.0, 3),
            (-90.0, 0.0, 4),
            (0.0, -90.0, 5),
        ];
        for (longitude, latitude, face) in centres {
            let id = leaf(Point {
                longitude,
                latitude,
            });
            assert_eq!(id >> 61, face, "{longitude} {latitude}");
            assert_eq!(id & 1, 1);
        }
    }
}
