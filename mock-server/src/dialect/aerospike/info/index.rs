//! Secondary indexes: their definitions, and statistics that are counted when they are asked for.
//! Nothing queries them yet, so nothing is kept up to date.

use std::collections::BTreeSet;

use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::info::InfoRequest;
use kvlab_protocol::aerospike::message::ParticleType;
use kvlab_protocol::aerospike::msgpack::{List, Map, Value};
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::{InfoError, Scene, either};
use crate::dialect::aerospike::bins::Bin;

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    namespace: String,
    name: String,
    definition: Definition,
}

/// What is indexed: two indexes with the same definition are the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Definition {
    set: Option<String>,
    bin: String,
    value: ValueType,
    collection: Collection,
    context: Option<String>,
    expression: Option<String>,
}

macro_rules! words {
    ($name:ident, $doc:literal, $($variant:ident $word:literal,)*) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum $name {
            $($variant,)*
        }

        impl $name {
            fn parse(word: &str) -> Option<Self> {
                match word.to_ascii_lowercase().as_str() {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

words! {
    ValueType, "The values an index holds.",
    Numeric "numeric",
    String "string",
    Blob "blob",
    Geo "geo2dsphere",
}

words! {
    Collection, "Which part of a bin is indexed.",
    Default "default",
    List "list",
    MapKeys "mapkeys",
    MapValues "mapvalues",
}

/// `sindex-create:namespace=N;set=S;indexname=I;bin=B;type=T`. Creating the same index again is no
/// error, and the same definition under another name renames it.
pub(super) fn create(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let (namespace, name) = names(request)?;
    let definition = definition(request)?;
    let state = &scene.context.shared.aerospike;
    out.put_slice(b"ok");
    if state.namespace(namespace.as_bytes()).is_none() {
        return Ok(());
    }
    let mut indexes = state.catalog.indexes();
    let mut own = indexes
        .iter_mut()
        .filter(|index| index.namespace == namespace);
    if let Some(same) = own.find(|index| index.name == name || index.definition == definition) {
        if same.definition != definition {
            let text = "'indexname' already exists with different definition";
            return Err((ResultCode::IndexExists, text));
        }
        same.name = name;
        return Ok(());
    }
    indexes.push(Index {
        namespace,
        name,
        definition,
    });
    Ok(())
}

fn names(request: InfoRequest<'_>) -> Result<(String, String), InfoError> {
    let namespace = either(request, b"namespace", b"ns")
        .ok_or((ResultCode::Namespace, "missing 'namespace'"))?;
    let name = request
        .param(b"indexname")
        .ok_or((ResultCode::Parameter, "missing 'indexname'"))?;
    Ok((text(namespace), text(name)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn definition(request: InfoRequest<'_>) -> Result<Definition, InfoError> {
    let parameter = |words| (ResultCode::Parameter, words);
    let param = |name: &[u8]| request.param(name).map(text);
    // Older clients write bin and type in one.
    let (bin, kind) = match param(b"indexdata") {
        Some(data) => match data.split_once(',') {
            Some((bin, kind)) => (Some(bin.to_owned()), Some(kind.to_owned())),
            None => return Err(parameter("bad 'indexdata'")),
        },
        None => (param(b"bin"), param(b"type")),
    };
    let expression = param(b"exp");
    let Some(kind) = kind else {
        return Err(parameter("both 'indexdata' and 'type' are missing"));
    };
    let value = ValueType::parse(&kind).ok_or(parameter(
        "bad 'type' - must be one of 'numeric', 'string', 'blob', 'geo2dsphere'",
    ))?;
    let bin = match bin {
        Some(bin) => bin,
        None if expression.is_some() => "null".to_owned(),
        None => return Err(parameter("missing 'bin'")),
    };
    let collection = match param(b"indextype") {
        None => Collection::Default,
        Some(word) => Collection::parse(&word).ok_or(parameter(
            "bad 'indextype' - must be one of 'default', 'list', 'mapkeys', 'mapvalues'",
        ))?,
    };
    Ok(Definition {
        set: param(b"set"),
        bin,
        value,
        collection,
        context: param(b"context"),
        expression,
    })
}

/// `sindex-list[:ns=N]`.
pub(super) fn list(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    let wanted = either(request, b"namespace", b"ns");
    let indexes = scene.context.shared.aerospike.catalog.indexes();
    let shown = indexes
        .iter()
        .filter(|index| wanted.is_none_or(|name| index.namespace.as_bytes() == name));
    for (place, index) in shown.enumerate() {
        if place > 0 {
            out.put_u8(b';');
        }
        let definition = &index.definition;
        let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
        let line = format!(
            "ns={}:indexname={}:set={}:bin={}:type={}:indextype={}:context={}:exp={}:state=RW",
            index.namespace,
            index.name,
            or_null(&definition.set),
            definition.bin,
            definition.value.word(),
            definition.collection.word(),
            or_null(&definition.context),
            or_null(&definition.expression),
        );
        out.put_slice(line.as_bytes());
    }
}

fn find(scene: &Scene<'_>, request: InfoRequest<'_>) -> Result<Option<Index>, InfoError> {
    let (namespace, name) = names(request)?;
    let indexes = scene.context.shared.aerospike.catalog.indexes();
    Ok(indexes
        .iter()
        .find(|index| index.namespace == namespace && index.name == name)
        .cloned())
}

/// `sindex-exists:ns=N;indexname=I`.
pub(super) fn exists(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let found = find(scene, request)?.is_some();
    out.put_slice(if found { b"true" } else { b"false" });
    Ok(())
}

/// `sindex-delete:ns=N;indexname=I`; a missing index is no error.
pub(super) fn delete(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let (namespace, name) = names(request)?;
    let catalog = &scene.context.shared.aerospike.catalog;
    catalog
        .indexes()
        .retain(|index| index.namespace != namespace || index.name != name);
    out.put_slice(b"ok");
    Ok(())
}

/// How many indexes a set has.
pub(super) fn count(scene: &Scene<'_>, namespace: &str, set: &[u8]) -> usize {
    let indexes = scene.context.shared.aerospike.catalog.indexes();
    let of_set = indexes.iter().filter(|index| {
        let name = index.definition.set.as_ref();
        index.namespace == namespace && name.is_some_and(|name| name.as_bytes() == set)
    });
    of_set.count()
}

/// `sindex-stat:ns=N;indexname=I`.
pub(super) fn stat(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let missing = (ResultCode::IndexNotFound, "no index");
    let index = find(scene, request)?.ok_or(missing)?;
    let name = index.namespace.as_bytes();
    let namespace = scene.context.shared.aerospike.namespace(name);
    let (mut entries, mut records, mut values) = (0_u64, 0_u64, BTreeSet::new());
    let definition = &index.definition;
    namespace.ok_or(missing)?.for_each(scene.now, |_, record| {
        let set = definition.set.as_ref();
        if set.is_some_and(|set| !record.is_in(set.as_bytes())) {
            return;
        }
        let Some(bin) = record.bins.get(definition.bin.as_bytes()) else {
            return;
        };
        let found = indexed(&bin, definition);
        entries += found.len() as u64;
        records += u64::from(!found.is_empty());
        values.extend(found);
    });
    let per = |count: u64| entries.checked_div(count).unwrap_or(0);
    let line = format!(
        "entries={entries};used_bytes={ARENA};entries_per_bval={};entries_per_rec={};\
         load_pct=100;load_time=0;stat_gc_recs=0",
        per(values.len() as u64),
        per(records),
    );
    out.put_slice(line.as_bytes());
    Ok(())
}

/// What the smallest index takes.
const ARENA: u64 = 16_777_216;

/// The values of a bin that go into an index, encoded.
fn indexed(bin: &Bin<'_>, definition: &Definition) -> Vec<Vec<u8>> {
    let of_type = |value: &Value| {
        matches!(
            (value, definition.value),
            (Value::Integer(_), ValueType::Numeric)
                | (Value::String(_), ValueType::String)
                | (Value::Blob(_), ValueType::Blob)
                | (Value::GeoJson(_), ValueType::Geo)
        )
    };
    let values: Vec<Value> = match (definition.collection, bin.particle) {
        (Collection::Default, particle) => {
            let wanted = match definition.value {
                ValueType::Numeric => ParticleType::Integer,
                ValueType::String => ParticleType::String,
                ValueType::Blob => ParticleType::Blob,
                ValueType::Geo => ParticleType::GeoJson,
            };
            let own = (particle == wanted).then(|| bin.value.to_vec());
            return own.into_iter().collect();
        }
        (Collection::List, ParticleType::List) => List::decode(bin.value)
            .map(|list| list.items)
            .unwrap_or_default(),
        (Collection::MapKeys, ParticleType::Map) => {
            let map = Map::decode(bin.value).unwrap_or_default();
            map.entries.into_iter().map(|(key, _)| key).collect()
        }
        (Collection::MapValues, ParticleType::Map) => {
            let map = Map::decode(bin.value).unwrap_or_default();
            map.entries.into_iter().map(|(_, value)| value).collect()
        }
        _ => Vec::new(),
    };
    let encoded = values.iter().filter(|value| of_type(value)).map(|value| {
        let mut bytes = BytesMut::new();
        value.encode(&mut bytes);
        bytes.to_vec()
    });
    encoded.collect()
}
