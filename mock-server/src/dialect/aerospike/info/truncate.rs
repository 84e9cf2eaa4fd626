//! Truncation: removes the records of a set or namespace that were last written before a moment.
//! Unknown names are no error, as the command is asynchronous on a real server; here it is done when
//! it is answered.

use bytes::{BufMut, BytesMut};
use kvlab_protocol::aerospike::info::InfoRequest;
use kvlab_protocol::aerospike::result_code::ResultCode;

use super::{InfoError, Scene, either};

/// `truncate:namespace=N;set=S[;lut=T]`; without a set the whole namespace.
pub(super) fn set(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    run(scene, request, request.param(b"set"), out)
}

/// `truncate-namespace:namespace=N[;lut=T]`.
pub(super) fn namespace(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    run(scene, request, None, out)
}

fn run(
    scene: &Scene<'_>,
    request: InfoRequest<'_>,
    set: Option<&[u8]>,
    out: &mut BytesMut,
) -> Result<(), InfoError> {
    let name = either(request, b"namespace", b"ns")
        .ok_or((ResultCode::Namespace, "missing 'namespace'"))?;
    let now = scene.now.unix_ns;
    // Without a moment everything that is there by now goes.
    let (before, at) = match request.param(b"lut") {
        None | Some(b"0") => (u64::MAX, now),
        Some(text) => {
            let lut = str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
                .ok_or((ResultCode::Parameter, "bad 'lut'"))?;
            if lut > now {
                return Err((ResultCode::Parameter, "'lut' is in the future"));
            }
            (lut, lut)
        }
    };
    if let Some(namespace) = scene.context.shared.aerospike.namespace(name) {
        namespace.truncate(set, before, at);
    }
    out.put_slice(b"ok");
    Ok(())
}
