//! Requests as a client sends them: arrays of bulk strings.
//!
//! [`encode_command`] writes any command. A load generator that sends the same command millions of times
//! prepares a [`Template`] instead: the frame is encoded once, and per request only the digits of the key
//! and the bytes of the value are put in their places.

mod command_line;
mod template;

use bytes::BytesMut;

pub use command_line::{
    CommandLineError, DATA_PLACEHOLDER, KEY_PLACEHOLDER, NUMBER_PLACEHOLDER, parse_command_line,
};
pub use template::{Template, TemplateBuilder};

use super::reply_writer::{bulk, length_line};

/// Appends one request.
///
/// ```
/// use bytes::BytesMut;
/// use kvlab_protocol::resp::request::encode_command;
///
/// let mut out = BytesMut::new();
/// encode_command(&[b"GET", b"k"], &mut out);
/// assert_eq!(&out[..], b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
/// ```
pub fn encode_command(args: &[&[u8]], out: &mut BytesMut) {
    encode_head(args.len(), out);
    for arg in args {
        encode_argument(arg, out);
    }
}

/// Appends the beginning of a request: how many arguments follow, the command's name among them.
pub fn encode_head(arguments: usize, out: &mut BytesMut) {
    length_line(out, b'*', arguments);
}

/// Appends one argument of a request; see [`encode_head`].
pub fn encode_argument(argument: &[u8], out: &mut BytesMut) {
    bulk(out, b'$', argument);
}
