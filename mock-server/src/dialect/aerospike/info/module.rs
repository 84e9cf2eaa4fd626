//! Modules of user-defined functions: kept and listed, never run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::info::InfoRequest;
use sha1::{Digest as _, Sha1};

use super::Scene;

/// `udf-put:filename=F;content=<base64>;content-len=N;udf-type=LUA;`
pub(super) fn put(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    let Some(filename) = filename(request) else {
        return out.put_slice(b"error=invalid_filename");
    };
    let content = request.param(b"content").unwrap_or_default();
    match STANDARD.decode(content) {
        Ok(source) => {
            let catalog = &scene.context.shared.aerospike.catalog;
            catalog.modules().insert(filename.to_vec(), source);
            out.put_slice(b"ok");
        }
        Err(_) => out.put_slice(b"error=invalid_base64_content"),
    }
}

/// `udf-list`: names and SHA-1 of the sources.
pub(super) fn list(scene: &Scene<'_>, out: &mut BytesMut) {
    for (filename, source) in scene.context.shared.aerospike.catalog.modules().iter() {
        out.put_slice(b"filename=");
        out.put_slice(filename);
        out.put_slice(b",hash=");
        for byte in Sha1::digest(source) {
            out.put_slice(format!("{byte:02x}").as_bytes());
        }
        out.put_slice(b",type=LUA;");
    }
}

/// `udf-get:filename=F`.
pub(super) fn get(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    let modules = scene.context.shared.aerospike.catalog.modules();
    let source = filename(request).and_then(|filename| modules.get(filename));
    match source {
        Some(source) => {
            out.put_slice(b"type=LUA;content=");
            out.put_slice(STANDARD.encode(source).as_bytes());
            out.put_u8(b';');
        }
        None => out.put_slice(b"error=not_found"),
    }
}

/// `udf-remove:filename=F`; a missing module is no error.
pub(super) fn remove(scene: &Scene<'_>, request: InfoRequest<'_>, out: &mut BytesMut) {
    match filename(request) {
        Some(filename) => {
            let catalog = &scene.context.shared.aerospike.catalog;
            catalog.modules().remove(filename);
            out.put_slice(b"ok");
        }
        None => out.put_slice(b"error=invalid_filename"),
    }
}

fn filename(request: InfoRequest<'_>) -> Option<&[u8]> {
    request.param(b"filename").filter(|name| !name.is_empty())
}
