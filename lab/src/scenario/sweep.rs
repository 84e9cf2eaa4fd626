//! The `[sweep]` table: lists of values make one file a matrix.
//!
//! An axis is either a key with the values it takes,
//!
//! ```toml
//! [sweep]
//! client.connections = [1, 10, 50]
//! server.latency = ["constant(1ms)", "exponential(1ms)"]
//! ```
//!
//! or a word of its own, with tables that each set some keys:
//!
//! ```toml
//! [[sweep.load]]
//! name = "closed"
//! [[sweep.load]]
//! name = "90 % poisson"
//! client = { rate = "90%", arrivals = "poisson" }
//! ```
//!
//! A combination is the document with the values put in at their places, so whatever is said about
//! it names the line of the value in the sweep.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::cover;

/// A table of the document.
pub(super) type Table<'a> = DeTable<'a>;
/// A value of the document and where it stands.
pub(super) type Node<'a> = Spanned<DeValue<'a>>;
/// A message and where in the document it belongs.
pub(super) type Misplaced = (usize, String);

/// The axes of a scenario.
#[derive(Debug)]
pub(super) struct Sweep<'a> {
    axes: Vec<Axis<'a>>,
    rows: Vec<Vec<usize>>,
}

/// One axis.
#[derive(Debug)]
struct Axis<'a> {
    /// The word before the values in the names of parts.
    label: String,
    place: usize,
    points: Vec<Point<'a>>,
}

/// One value of an axis: its name, and what it puts into the document.
#[derive(Debug)]
struct Point<'a> {
    name: String,
    overlay: Table<'a>,
}

/// One combination of values.
#[derive(Debug)]
pub(super) struct Variation<'a> {
    /// Its values by name, as in `connections=10, load=closed`.
    pub(super) name: String,
    /// The document with these values.
    pub(super) document: Table<'a>,
}

impl<'a> Sweep<'a> {
    /// Reads the table.
    pub(super) fn read(node: Node<'a>) -> Result<Self, Misplaced> {
        let place = node.span().start;
        let DeValue::Table(table) = node.into_inner() else {
            return Err((place, "sweep: expected a table of axes".to_owned()));
        };
        let mut pairwise = false;
        let mut axes = Vec::new();
        for (key, value) in table {
            let (place, key) = (key.span().start, key.into_inner().into_owned());
            match (key.as_str(), value.get_ref()) {
                ("cover", DeValue::String(word)) if word == "pairwise" => pairwise = true,
                ("cover", DeValue::String(word)) if word == "product" => pairwise = false,
                ("cover", _) => {
                    let message = "sweep.cover: expected product or pairwise".to_owned();
                    return Err((value.span().start, message));
                }
                _ if is_root(&key) => key_axes(&key, place, value, &mut axes)?,
                _ => axes.push(Axis::of_tables(key, place, value)?),
            }
        }
        // The document's tables are sorted by key; the order of the file is the reader's.
        axes.sort_by_key(|axis| axis.place);
        check(&axes)?;
        let lengths: Vec<usize> = axes.iter().map(|axis| axis.points.len()).collect();
        let product = lengths.iter().try_fold(1_usize, |all, length| {
            all.checked_mul(*length).filter(|all| *all <= MAX_PRODUCT)
        });
        if pairwise {
            let values: usize = lengths.iter().sum();
            if values > MAX_VALUES {
                let message = format!("sweep: {values} values, at most {MAX_VALUES}");
                return Err((place, message));
            }
            return Ok(Self {
                rows: cover::pairwise(&lengths),
                axes,
            });
        }
        if product.is_none() {
            let message = format!(
                "sweep: more than {MAX_PRODUCT} combinations; cover = \"pairwise\" takes fewer"
            );
            return Err((place, message));
        }
        Ok(Self {
            rows: cover::product(&lengths),
            axes,
        })
    }

    /// The combinations, each put into a copy of the document.
    pub(super) fn variations(
        &self,
        document: &Table<'a>,
    ) -> impl Iterator<Item = Result<Variation<'a>, Misplaced>> {
        self.rows.iter().map(|row| {
            let mut document = document.clone();
            let mut names = Vec::with_capacity(row.len());
            for (axis, value) in self.axes.iter().zip(row) {
                let point = &axis.points[*value];
                names.push(format!("{}={}", axis.label, point.name));
                put(&mut document, &point.overlay)?;
            }
            Ok(Variation {
                name: names.join(", "),
                document,
            })
        })
    }
}

impl<'a> Axis<'a> {
    /// An axis under a word of its own: a list of tables with names.
    fn of_tables(label: String, place: usize, value: Node<'a>) -> Result<Self, Misplaced> {
        let expected = || {
            format!(
                "sweep.{label}: expected a list of tables with a name and the keys they set; an axis \
                 of plain values is called by its key, as in client.connections"
            )
        };
        let mut points = Vec::new();
        for item in list(value, &expected)? {
            let place = item.span().start;
            let DeValue::Table(mut overlay) = item.into_inner() else {
                return Err((place, expected()));
            };
            let name = match overlay.remove("name").map(Spanned::into_inner) {
                Some(DeValue::String(name)) => name.into_owned(),
                _ => return Err((place, format!("sweep.{label}: a table without a name"))),
            };
            if let Some((key, _)) = overlay.iter().find(|(key, _)| !is_root(key.get_ref())) {
                let message = format!(
                    "sweep.{label}: unknown key `{}`; expected name, {}",
                    key.get_ref(),
                    ROOTS.join(", ")
                );
                return Err((key.span().start, message));
            }
            points.push(Point { name, overlay });
        }
        Ok(Self {
            label,
            place,
            points,
        })
    }
}

/// The axes under `server`, `client` or `expect`: keys with lists of values, in nested tables or with
/// dots in one key.
fn key_axes<'a>(
    path: &str,
    place: usize,
    value: Node<'a>,
    axes: &mut Vec<Axis<'a>>,
) -> Result<(), Misplaced> {
    if matches!(value.get_ref(), DeValue::Table(_)) {
        let DeValue::Table(table) = value.into_inner() else {
            return Ok(());
        };
        for (key, value) in table {
            let path = format!("{path}.{}", key.get_ref());
            key_axes(&path, key.span().start, value, axes)?;
        }
        return Ok(());
    }
    let segments = segments(path);
    let expected = || format!("sweep: {path}: expected a list of values");
    let Some((label, parents)) = segments
        .split_last()
        .filter(|(_, parents)| !parents.is_empty())
    else {
        return Err((
            place,
            format!("sweep: {path}: expected a key in that table"),
        ));
    };
    let mut points = Vec::new();
    for item in list(value, &expected)? {
        let name = written(item.get_ref());
        let span = item.span();
        let mut overlay = Table::new();
        overlay.insert(key(label, &span), item);
        for parent in parents.iter().rev() {
            let inner = Spanned::new(span.clone(), DeValue::Table(overlay));
            overlay = Table::new();
            overlay.insert(key(parent, &span), inner);
        }
        points.push(Point { name, overlay });
    }
    axes.push(Axis {
        label: (*label).to_owned(),
        place,
        points,
    });
    Ok(())
}

/// The parts of a dotted path; a quantile such as p99.9 is one.
fn segments(path: &str) -> Vec<&str> {
    let (front, quantile) = match path.strip_suffix(".p99.9") {
        Some(front) => (front, Some("p99.9")),
        None => (path, None),
    };
    front.split('.').chain(quantile).collect()
}

fn key<'a>(name: &str, span: &Range<usize>) -> Spanned<toml::de::DeString<'a>> {
    Spanned::new(span.clone(), name.to_owned().into())
}

/// The items of a list that has some.
fn list<'a>(value: Node<'a>, expected: &dyn Fn() -> String) -> Result<Vec<Node<'a>>, Misplaced> {
    let place = value.span().start;
    match value.into_inner() {
        DeValue::Array(items) if !items.is_empty() => Ok(items.into_iter().collect()),
        _ => Err((place, expected())),
    }
}

/// A value as it stands in the names of parts.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.clone().into_owned(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| written(item.get_ref())).collect();
            format!("[{}]", items.join(" "))
        }
        DeValue::Table(table) => {
            let entries = table.iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}={}", key.get_ref(), written(value.get_ref())))
                .collect();
            format!("{{{}}}", entries.join(" "))
        }
    }
}

/// No two axes share a label or set one key, and no axis has two values of one name.
fn check(axes: &[Axis<'_>]) -> Result<(), Misplaced> {
    for (place, axis) in axes.iter().enumerate() {
        for (value, point) in axis.points.iter().enumerate() {
            if axis.points[..value]
                .iter()
                .any(|other| other.name == point.name)
            {
                let message = format!("sweep: {} has '{}' twice", axis.label, point.name);
                return Err((axis.place, message));
            }
        }
        for other in &axes[..place] {
            if other.label == axis.label {
                let message = format!("sweep: two axes are called {}", axis.label);
                return Err((axis.place, message));
            }
            let theirs: Vec<String> = other.keys().collect();
            if let Some(key) = axis.keys().find(|key| theirs.contains(key)) {
                let message = format!("sweep: {} and {} both set {key}", other.label, axis.label);
                return Err((axis.place, message));
            }
        }
    }
    Ok(())
}

impl Axis<'_> {
    /// The keys that any of the values sets.
    fn keys(&self) -> impl Iterator<Item = String> {
        let mut keys = Vec::new();
        for point in &self.points {
            leaves("", &point.overlay, &mut keys);
        }
        keys.into_iter()
    }
}

fn leaves(path: &str, table: &Table<'_>, keys: &mut Vec<String>) {
    for (key, value) in table {
        let path = match path {
            "" => key.get_ref().to_string(),
            _ => format!("{path}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(inner) => leaves(&path, inner, keys),
            _ => keys.push(path),
        }
    }
}

/// Puts the keys of an overlay into the document; those of `client` into every client.
fn put<'a>(document: &mut Table<'a>, overlay: &Table<'a>) -> Result<(), Misplaced> {
    for (key, value) in overlay {
        if key.get_ref() == "client" {
            let DeValue::Table(settings) = value.get_ref() else {
                let message = "client: expected a table of keys".to_owned();
                return Err((value.span().start, message));
            };
            let Some(DeValue::Array(clients)) = document.get_mut("client").map(Spanned::get_mut)
            else {
                let message = "a sweep over clients needs at least one [[client]]".to_owned();
                return Err((value.span().start, message));
            };
            for client in clients.iter_mut() {
                if let DeValue::Table(client) = client.get_mut() {
                    merge(client, settings);
                }
            }
        } else {
            merge_entry(document, key, value);
        }
    }
    Ok(())
}

/// Tables are put together, everything else is replaced.
fn merge<'a>(into: &mut Table<'a>, from: &Table<'a>) {
    for (key, value) in from {
        merge_entry(into, key, value);
    }
}

fn merge_entry<'a>(into: &mut Table<'a>, key: &Spanned<toml::de::DeString<'a>>, value: &Node<'a>) {
    if let DeValue::Table(inner) = value.get_ref()
        && let Some(DeValue::Table(table)) =
            into.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut)
    {
        merge(table, inner);
    } else {
        // A new key, so that the place is the sweep's.
        into.remove(key.get_ref().as_ref());
        into.insert(key.clone(), value.clone());
    }
}

fn is_root(key: &str) -> bool {
    ROOTS.iter().any(|root| {
        key.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The tables a sweep may vary. The network is the scenario's, because its report names it once.
const ROOTS: [&str; 3] = ["server", "client", "expect"];
/// Bound of the combinations of a scenario.
const MAX_PRODUCT: usize = 2_000;
/// Bound of the values of all axes of a pairwise cover, whose rows it bounds with that.
const MAX_VALUES: usize = 200;
