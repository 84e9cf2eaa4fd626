//! Which connections CLIENT KILL ends and CLIENT LIST shows.

use std::sync::Arc;

use crate::clients::ClientInfo;
use crate::config::RedisVersion;
use crate::dialect::redis::call::Call;
use crate::dialect::redis::fault::Fault;
use kvlab_protocol::resp::number::parse_i64;

/// What CLIENT KILL asks for; everything that is given must hold.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    kind: Option<ClientType>,
    user: Option<&'a [u8]>,
    age_min_s: Option<u64>,
    spare_self: bool,
}

/// The types of client. Connections to this server are all of the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    Other,
}

impl ClientType {
    /// Whether `_client` is of this type.
    pub(super) fn includes(self, _client: &ClientInfo) -> bool {
        self == Self::Normal
    }
}

/// The type named `name`.
pub(super) fn client_type(name: &[u8]) -> Result<ClientType, Fault> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"slave" | b"replica" | b"master" | b"pubsub" => Ok(ClientType::Other),
        _ => Err(Fault::quoting("ERR Unknown client type '", name, "'")),
    }
}

/// The connections that speak RESP, oldest first.
pub(super) fn connected(call: &Call<'_, '_>) -> impl Iterator<Item = Arc<ClientInfo>> {
    let shared = call.context.shared;
    let addresses = shared.addresses.get().copied().unwrap_or_default();
    let aerospike = [addresses.aerospike, addresses.aerospike_tls];
    shared.clients.list().into_iter().filter(move |client| {
        let mut ports = aerospike.iter().flatten().map(|address| address.port());
        ports.all(|port| port != client.local.port())
            && client.details().protocol != Some(crate::exchange::Protocol::Aerospike)
    })
}

impl<'a> Filter<'a> {
    /// The filter of a CLIENT KILL in its old or its new form.
    pub(super) fn parse(call: &Call<'a, '_>) -> Result<Self, Fault> {
        if call.args.len() == 3 {
            return Ok(Self {
                address: Some(call.args.arg(2)),
                ..Self::default()
            });
        }
        let mut filter = Self {
            spare_self: true,
            ..Self::default()
        };
        let mut options = call.args.from(2).iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or(Fault::SYNTAX)?;
            filter.add(call, option, value)?;
        }
        Ok(filter)
    }

    fn add(&mut self, call: &Call<'_, '_>, option: &[u8], value: &'a [u8]) -> Result<(), Fault> {
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => {
                let id = parse_i64(value)
                    .and_then(|id| u64::try_from(id).ok())
                    .filter(|id| *id > 0)
                    .ok_or(Fault::new("ERR client-id should be greater than 0"))?;
                self.id = Some(id);
            }
            b"TYPE" => self.kind = Some(client_type(value)?),
            b"ADDR" => self.address = Some(value),
            b"LADDR" => self.local_address = Some(value),
            b"USER" if call.state().users.find(value).is_some() => self.user = Some(value),
            b"USER" => return Err(Fault::quoting("ERR No such user '", value, "'")),
            b"SKIPME" if value.eq_ignore_ascii_case(b"yes") => self.spare_self = true,
            b"SKIPME" if value.eq_ignore_ascii_case(b"no") => self.spare_self = false,
            b"MAXAGE" if call.state().version >= FIRST_WITH_MAXAGE => {
                let age = parse_i64(value)
                    .and_then(|age| u64::try_from(age).ok())
                    .filter(|age| *age > 0)
                    .ok_or(Fault::new("ERR maxage is not an integer or out of range"))?;
                self.age_min_s = Some(age);
            }
            _ => return Err(Fault::SYNTAX),
        }
        Ok(())
    }

    /// Whether `client` is to be ended.
    pub(super) fn matches(&self, call: &Call<'_, '_>, client: &ClientInfo) -> bool {
        let now = call.context.now;
        let is = |wanted: Option<&[u8]>, address: std::net::SocketAddr| {
            wanted.is_none_or(|wanted| wanted == address.to_string().as_bytes())
        };
        self.id.is_none_or(|id| id == client.id.0)
            && is(self.address, client.peer)
            && is(self.local_address, client.local)
            && self.kind.is_none_or(|kind| kind.includes(client))
            && self.user.is_none_or(|user| user == client.details().user)
            && self
                .age_min_s
                .is_none_or(|age| now.saturating_since(client.connected) / 1_000_000_000 >= age)
            && !(self.spare_self && client.id == call.context.client.id)
    }
}

const FIRST_WITH_MAXAGE: RedisVersion = RedisVersion {
    major: 7,
    minor: 4,
    patch: 0,
};
