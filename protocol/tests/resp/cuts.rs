//! The same bytes cut at every boundary give the same items.

use kvlab_protocol::resp::{
    OwnedArgs, ReplyDecoder, ReplySkimmer, RequestDecoder, RequestLimits, Skim, Value,
};

use crate::vectors::{bytes, request_cases, rows};

/// Requests of every form, one behind another.
const REQUESTS: &[u8] = b"*1\r\n$4\r\nPING\r\n\
    *3\r\n$3\r\nSET\r\n$8\r\nkey:0001\r\n$12\r\n\r\n*1\r\n$0\r\n\r\n\r\n\
    GET \"a b\\x00\" 'c'\r\n\n*0\r\n*-1\r\nPING\n\
    *2\r\n$4\r\nECHO\r\n$0\r\n\r\n*2\r\n$4\r\nECHO\r\n$100\r\n\
    0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\n\
    *11\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n";

/// Replies of every type, one behind another.
const REPLIES: &[u8] =
    b"+OK\r\n-ERR no\r\n:1\r\n:-12345\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n_\r\n\
    ,1.5\r\n,-inf\r\n#t\r\n(123456789012345678901234567890\r\n!5\r\nERR x\r\n=5\r\ntxt:a\r\n\
    *3\r\n:1\r\n*2\r\n$1\r\na\r\n_\r\n%1\r\n+k\r\n~1\r\n#f\r\n\
    |1\r\n+ttl\r\n:1\r\n$2\r\nhi\r\n>2\r\n+message\r\n$?\r\n;2\r\nab\r\n;1\r\nc\r\n;0\r\n\
    *?\r\n:1\r\n%?\r\n+a\r\n|1\r\n:1\r\n:2\r\n:3\r\n.\r\n~?\r\n.\r\n.\r\n$12\r\nabcdefghijkl\r\n";

/// Takes one item off the front of the bytes, and says how long it was.
type Take<T> = dyn FnMut(&[u8]) -> Option<(T, usize)>;

/// Reads `data` whole, in two parts for every cut, and byte by byte; the items must be the same. Gives their number.
fn same_at_every_cut<T: PartialEq + std::fmt::Debug>(
    data: &[u8],
    mut new: impl FnMut() -> Box<Take<T>>,
) -> usize {
    let whole = items(data, &[data.len()], &mut *new());
    for cut in 0..data.len() {
        let found = items(data, &[cut, data.len()], &mut *new());
        assert_eq!(found, whole, "cut at {cut}");
    }
    let every_byte: Vec<usize> = (0..=data.len()).collect();
    assert_eq!(items(data, &every_byte, &mut *new()), whole, "byte by byte");
    whole.len()
}

fn items<T>(data: &[u8], arrivals: &[usize], take: &mut Take<T>) -> Vec<(T, usize)> {
    let (mut found, mut pos) = (Vec::new(), 0);
    for &arrived in arrivals {
        while let Some((item, len)) = take(&data[pos..arrived]) {
            assert!(len > 0);
            pos += len;
            found.push((item, len));
        }
    }
    assert_eq!(pos, data.len(), "everything is consumed");
    found
}

fn next_request(decoder: &mut RequestDecoder, buf: &[u8]) -> Option<(OwnedArgs, usize)> {
    let len = decoder.decode(buf, &RequestLimits::default()).unwrap()?;
    Some((decoder.args(&buf[..len]).to_owned(), len))
}

#[test]
fn requests_survive_any_cut() {
    let count = same_at_every_cut(REQUESTS, || {
        let mut decoder = RequestDecoder::new();
        Box::new(move |buf| next_request(&mut decoder, buf))
    });
    assert_eq!(count, 10);
}

#[test]
fn recorded_requests_survive_any_cut() {
    // Those that are read to their end without an error.
    let cases = request_cases();
    let quiet = |request: &[u8]| {
        let (mut decoder, mut pos) = (RequestDecoder::new(), 0);
        while pos < request.len() {
            match decoder.decode(&request[pos..], &RequestLimits::default()) {
                Ok(Some(n)) => pos += n,
                _ => return false,
            }
        }
        true
    };
    let requests: Vec<_> = cases
        .iter()
        .map(|case| case.request())
        .filter(|r| quiet(r))
        .collect();
    assert!(requests.len() > 20);
    for request in requests {
        same_at_every_cut(&request, || {
            let mut decoder = RequestDecoder::new();
            Box::new(move |buf| next_request(&mut decoder, buf))
        });
    }
}

fn next_skim(skimmer: &mut ReplySkimmer, buf: &[u8]) -> Option<(Skim, usize)> {
    skimmer.skim(buf).unwrap().map(|skim| (skim, skim.len))
}

#[test]
fn replies_survive_any_cut_and_both_decoders_agree_on_their_ends() {
    let skimmed = same_at_every_cut(REPLIES, || {
        let mut skimmer = ReplySkimmer::new();
        Box::new(move |buf| next_skim(&mut skimmer, buf))
    });
    let decoded = same_at_every_cut::<Value>(REPLIES, || {
        let mut decoder = ReplyDecoder::new();
        Box::new(move |buf| decoder.decode(buf).unwrap())
    });
    assert_eq!((skimmed, decoded), (21, 21));
    let (mut skimmer, mut decoder) = (ReplySkimmer::new(), ReplyDecoder::new());
    let mut rest = REPLIES;
    while !rest.is_empty() {
        let skim = skimmer.skim(rest).unwrap().unwrap();
        assert_eq!(decoder.decode(rest).unwrap().unwrap().1, skim.len);
        rest = &rest[skim.len..];
    }
}

#[test]
fn recorded_replies_survive_any_cut() {
    for [_, resp2, resp3] in rows(include_str!("../data/resp/replies.json"), "replies") {
        for wire in [bytes(&resp2), bytes(&resp3)] {
            same_at_every_cut(&wire, || {
                let mut skimmer = ReplySkimmer::new();
                Box::new(move |buf| next_skim(&mut skimmer, buf))
            });
        }
    }
}

#[test]
fn a_large_request_byte_by_byte_is_not_quadratic() {
    // Were every byte a new scan, this would look at two to the power of 39 bytes and not end.
    const LEN: usize = 1 << 20;
    let request = [
        format!("*2\r\n$4\r\nECHO\r\n${LEN}\r\n").as_bytes(),
        &vec![b'x'; LEN],
        b"\r\n",
    ]
    .concat();
    let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
    for arrived in 1..request.len() {
        assert_eq!(decoder.decode(&request[..arrived], &limits), Ok(None));
    }
    assert_eq!(decoder.decode(&request, &limits), Ok(Some(request.len())));

    let mut line = vec![b'+'];
    line.resize(LEN, b'x');
    let mut skimmer = ReplySkimmer::new();
    for arrived in 1..=LEN {
        assert_eq!(skimmer.skim(&line[..arrived]), Ok(None));
    }
    line.extend_from_slice(b"\r\n");
    assert_eq!(skimmer.skim(&line).unwrap().unwrap().len, LEN + 2);
}
