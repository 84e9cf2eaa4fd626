//! The data of a running server without the wire: what a test puts in beforehand and looks up
//! afterwards.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kvlab_protocol::aerospike::digest::Key;
use kvlab_protocol::aerospike::particle;
use kvlab_protocol::resp::request::encode_command;
use kvlab_protocol::resp::{ReplyDecoder, Value};
use kvlab_timing::Stamp;

use crate::clients::ClientInfo;
use crate::dialect::aerospike::record::Moment;
use crate::dialect::aerospike::{Namespace, RecordCopy};
use crate::dialect::redis::Connection;
use crate::dialect::{Context, Flow, Limited};
use crate::server::MockServer;
use crate::worker::Worker;

/// A database of the RESP side. Its commands run on a worker of the server, between the requests of
/// clients, without delay, and are not part of the recorded truth.
#[derive(Debug, Clone, Copy)]
pub struct RedisDirect<'a> {
    server: &'a MockServer,
    database: usize,
}

/// Why a command did not give a value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The server answered with this error.
    #[error("{0}")]
    Refused(String),
    /// The command waits for a pause to end or for data to come.
    #[error("the command would have to wait")]
    WouldWait,
    /// The answer is of another kind than the command gives.
    #[error("unexpected reply {0:?}")]
    Unexpected(Value),
}

impl<'a> RedisDirect<'a> {
    pub(crate) fn new(server: &'a MockServer) -> Self {
        Self {
            server,
            database: 0,
        }
    }

    /// The same for database `number`; the first one is 0.
    #[must_use]
    pub fn database(self, number: usize) -> Self {
        Self {
            database: number,
            ..self
        }
    }

    /// Runs any command and returns its reply as a client of RESP2 gets it.
    ///
    /// # Errors
    /// When the server answers with an error, or the command would have to wait.
    pub fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Value, CommandError> {
        let database = self.database.to_string();
        let mut select = BytesMut::new();
        encode_command(&[b"SELECT", database.as_bytes()], &mut select);
        let select = (self.database != 0).then_some(select);
        let mut command = BytesMut::new();
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        encode_command(&args, &mut command);
        self.server.on_worker(move |now, worker| {
            let client = Arc::new(ClientInfo::inside(worker.index, now));
            let mut connection = Connection::inside(&worker.shared);
            let mut result = Ok(Value::Null);
            for request in select.iter().chain([&command]) {
                if result.is_ok() {
                    result = run(&mut connection, request, now, worker, &client);
                }
            }
            connection.close(&worker.shared, &client);
            result
        })
    }

    /// Stores a string under `key`, without expiry.
    ///
    /// # Errors
    /// See [`RedisDirect::command`].
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), CommandError> {
        self.command(&[b"SET", key.as_ref(), value.as_ref()])
            .map(drop)
    }

    /// The string under `key`, if there is one.
    ///
    /// # Errors
    /// When the key holds another type; see also [`RedisDirect::command`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, CommandError> {
        match self.command(&[b"GET", key.as_ref()])? {
            Value::Bulk(value) => Ok(Some(value)),
            Value::Null => Ok(None),
            other => Err(CommandError::Unexpected(other)),
        }
    }

    /// Removes `key`; whether it was there.
    ///
    /// # Errors
    /// See [`RedisDirect::command`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, CommandError> {
        Ok(self.integer(&[b"DEL", key.as_ref()])? != 0)
    }

    /// How many keys there are.
    ///
    /// # Errors
    /// See [`RedisDirect::command`].
    pub fn count(&self) -> Result<u64, CommandError> {
        let count = self.integer(&[b"DBSIZE"])?;
        u64::try_from(count).map_err(|_| CommandError::Unexpected(Value::Integer(count)))
    }

    /// All keys, in no particular order.
    ///
    /// # Errors
    /// See [`RedisDirect::command`].
    pub fn keys(&self) -> Result<Vec<Bytes>, CommandError> {
        let Value::Array(values) = self.command(&["KEYS", "*"])? else {
            return Ok(Vec::new());
        };
        let key = |value| match value {
            Value::Bulk(key) => Ok(key),
            other => Err(CommandError::Unexpected(other)),
        };
        values.into_iter().map(key).collect()
    }

    /// Removes every key of the database.
    ///
    /// # Errors
    /// See [`RedisDirect::command`].
    pub fn flush(&self) -> Result<(), CommandError> {
        self.command(&["FLUSHDB"]).map(drop)
    }

    fn integer(&self, args: &[&[u8]]) -> Result<i64, CommandError> {
        match self.command(args)? {
            Value::Integer(number) => Ok(number),
            other => Err(CommandError::Unexpected(other)),
        }
    }
}

fn run(
    connection: &mut Connection,
    request: &[u8],
    now: Stamp,
    worker: &Worker,
    client: &Arc<ClientInfo>,
) -> Result<Value, CommandError> {
    let refused = || CommandError::Refused("the server takes no further client".to_owned());
    let frame = connection
        .decode(request)
        .ok()
        .flatten()
        .ok_or_else(refused)?;
    let mut context = Context {
        limited: Limited::default(),
        now,
        worker: worker.index,
        shared: &worker.shared,
        client,
    };
    let mut out = BytesMut::new();
    let request = request.get(..frame.len).unwrap_or(request);
    if let Flow::Park { .. } = connection.execute(request, &mut context, &mut out) {
        return Err(CommandError::WouldWait);
    }
    match ReplyDecoder::new().decode(&out) {
        Ok(Some((Value::Error(text), _))) => Err(CommandError::Refused(
            String::from_utf8_lossy(&text).into_owned(),
        )),
        Ok(Some((value, _))) => Ok(value),
        // A command without a reply, such as CLIENT REPLY OFF.
        _ => Ok(Value::Null),
    }
}

/// A namespace of the Aerospike side.
#[derive(Debug, Clone, Copy)]
pub struct AerospikeDirect<'a> {
    server: &'a MockServer,
    namespace: &'a Namespace,
}

impl<'a> AerospikeDirect<'a> {
    pub(crate) fn new(server: &'a MockServer, namespace: &'a Namespace) -> Self {
        Self { server, namespace }
    }

    /// Stores a record that never expires under `key` in `set` (empty for none), in place of the one
    /// that is there. Without bins it removes the record.
    pub fn put(&self, set: &str, key: Key<'_>, bins: &[(&str, particle::Value)]) {
        let bins: Vec<(&[u8], particle::Value)> = bins
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.clone()))
            .collect();
        self.namespace.put(set.as_bytes(), key, &bins, self.now());
    }

    /// The record under `key` in `set`, unless it is missing or has expired.
    #[must_use]
    pub fn get(&self, set: &str, key: Key<'_>) -> Option<RecordCopy> {
        self.namespace.get(set.as_bytes(), key, self.now())
    }

    /// How many records there are, those included that expired and were not yet purged.
    #[must_use]
    pub fn count(&self) -> usize {
        self.namespace.records().len()
    }

    fn now(&self) -> Moment {
        Moment::new(self.server.shared().unix_nanos(self.server.clock().now()))
    }
}
