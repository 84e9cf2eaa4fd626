//! The Aerospike wire protocol, as spoken by Community Edition 8.1.
//!
//! Every message of both directions is an 8-byte header ([`proto`]) and a body:
//!
//! | type | body | module |
//! |---|---|---|
//! | 1 | text commands and their answers | [`info`] |
//! | 2 | user management and login | [`admin`] |
//! | 3 | 22-byte header, fields, operations; answers may hold several | [`message`] |
//! | 4 | deflated message, refused by a Community server | |
//!
//! Around them: key [`digest`]s and partitions, [`result_code`]s, values of bins ([`particle`])
//! with the [`msgpack`] dialect of lists and maps and its value [`order`], arguments of collection
//! operations ([`cdt`]) and of scans and queries ([`query`]), [`batch`] rows, and the client's side:
//! pre-encoded [`request`]s and a fast reader of [`reply`]s. [`tree`] takes whole frames apart for
//! tests and tools.
//!
//! Integers are big-endian unless a field says otherwise. Nothing here owns a socket or a clock;
//! nothing on the path of a single-record request allocates. Source: the vectors in
//! `golden/aerospike`, captured from a real server.

pub mod admin;
pub mod batch;
pub mod cdt;
pub mod credential;
pub mod digest;
mod field;
mod flags;
pub mod info;
pub mod limits;
pub mod message;
pub mod msgpack;
mod op;
pub mod order;
pub mod particle;
pub mod proto;
pub mod query;
pub mod reply;
pub mod request;
pub mod result_code;
mod text;
pub mod tree;
mod writer;

pub use flags::BatchFlags;
