//! RESP targets.

// A broken promise must panic here: that is how a fuzzer learns of it.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::missing_panics_doc
)]

use bytes::BytesMut;

use crate::resp::{
    OwnedArgs, ReplyDecoder, ReplySkimmer, RequestDecoder, RequestError, RequestLimits, Value,
    Version, request,
};

/// Requests: no panic, consumed lengths in range, and the same requests and error whether the bytes come
/// whole or one by one.
pub fn resp_request(data: &[u8]) {
    for limits in [RequestLimits::default(), RequestLimits::unauthenticated()] {
        assert_eq!(
            requests(data, data.len(), &limits),
            requests(data, 1, &limits)
        );
    }
}

/// Replies: no panic, the skimmer and the full decoder end at the same byte or fail alike, whole or cut.
pub fn resp_reply(data: &[u8]) {
    let whole = replies(data, data.len());
    assert_eq!(whole.ends, replies(data, 1).ends);
    let mut skimmer = ReplySkimmer::new();
    let (mut pos, mut ends) = (0, Vec::new());
    loop {
        match skimmer.skim(&data[pos..]) {
            Ok(Some(skim)) => {
                pos += skim.len;
                ends.push(Ok(pos));
            }
            Ok(None) => break,
            Err(error) => {
                ends.push(Err(error));
                break;
            }
        }
    }
    assert_eq!(whole.ends, ends);
}

/// Values and requests that were decoded encode to bytes that decode to the same again.
pub fn resp_round_trip(data: &[u8]) {
    for value in replies(data, data.len()).values {
        let mut wire = BytesMut::new();
        value.encode(Version::Resp3, &mut wire);
        let (again, len) = ReplyDecoder::new().decode(&wire).unwrap().unwrap();
        assert_eq!(len, wire.len());
        let mut second = BytesMut::new();
        again.encode(Version::Resp3, &mut second);
        assert_eq!(wire, second);
        let mut older = BytesMut::new();
        value.encode(Version::Resp2, &mut older);
        assert_eq!(
            ReplyDecoder::new().decode(&older).unwrap().unwrap().1,
            older.len()
        );
    }
    let limits = RequestLimits::default();
    for request in requests(data, data.len(), &limits).0 {
        let args: Vec<&[u8]> = request.as_args().iter().collect();
        let mut wire = BytesMut::new();
        request::encode_command(&args, &mut wire);
        let mut decoder = RequestDecoder::new();
        assert_eq!(decoder.decode(&wire, &limits), Ok(Some(wire.len())));
        assert_eq!(decoder.args(&wire).to_owned(), request);
    }
}

/// Decodes all requests of `data`, given in steps of `step` bytes.
fn requests(
    data: &[u8],
    step: usize,
    limits: &RequestLimits,
) -> (Vec<OwnedArgs>, Option<RequestError>, usize) {
    let mut decoder = RequestDecoder::new();
    let (mut found, mut pos, mut arrived) = (Vec::new(), 0, 0);
    loop {
        arrived = data.len().min(arrived + step);
        loop {
            let buf = &data[pos..arrived];
            match decoder.decode(buf, limits) {
                Ok(Some(n)) => {
                    assert!(0 < n && n <= buf.len());
                    found.push(decoder.args(&buf[..n]).to_owned());
                    pos += n;
                }
                Ok(None) => break,
                Err(error) => return (found, Some(error), pos),
            }
        }
        if arrived == data.len() {
            return (found, None, pos);
        }
    }
}

struct Replies {
    values: Vec<Value>,
    ends: Vec<Result<usize, crate::resp::DecodeError>>,
}

/// Decodes all replies of `data`, given in steps of `step` bytes.
fn replies(data: &[u8], step: usize) -> Replies {
    let mut decoder = ReplyDecoder::new();
    let mut replies = Replies {
        values: Vec::new(),
        ends: Vec::new(),
    };
    let (mut pos, mut arrived) = (0, 0);
    loop {
        arrived = data.len().min(arrived + step);
        loop {
            match decoder.decode(&data[pos..arrived]) {
                Ok(Some((value, n))) => {
                    pos += n;
                    replies.values.push(value);
                    replies.ends.push(Ok(pos));
                }
                Ok(None) => break,
                Err(error) => {
                    replies.ends.push(Err(error));
                    return replies;
                }
            }
        }
        if arrived == data.len() {
            return replies;
        }
    }
}
