//! Logging in, where there are users: the internal mode of an Enterprise server.
//!
//! | message | with | answer |
//! |---|---|---|
//! | login | user, credential | 0 with a session token and the seconds it lives |
//! | login | user, clear password | the same |
//! | authenticate | user, session token | 0 |
//! | authenticate | user, credential, as clients before session tokens did | 0 |
//! | either | a user nobody knows | 60 |
//! | either | another credential or token | 65 |
//! | authenticate | a token that is too old | 66 |
//! | any other | before a login | 80 |
//! | any other, to change or list users and roles | after a login | 81: users may read and write, no more |
//!
//! After each of these the connection stays usable. A connection stays logged in until its end,
//! whatever becomes of the token.
//!
//! A token says when it ends and is signed with the seed and the credential, so that the server keeps
//! none: any number of logins takes no memory.

use std::sync::OnceLock;

use bytes::BytesMut;
use kvlab_protocol::aerospike::admin::{
    AdminError, AdminField, AdminFieldKind, AdminView, Command, put_admin, put_answer,
};
use kvlab_protocol::aerospike::credential::{CREDENTIAL_LEN, credential};
use kvlab_protocol::aerospike::result_code::ResultCode;
use sha2::{Digest, Sha256};

use crate::account::Account;
use crate::config::ServerConfig;

/// The users of a server that has some.
#[derive(Debug)]
pub(super) struct Security {
    users: Vec<Known>,
    seed: u64,
    session_ttl_s: u32,
}

/// A user with the credential that the password gives, once it was computed.
#[derive(Debug)]
struct Known {
    account: Account,
    credential: OnceLock<[u8; CREDENTIAL_LEN]>,
}

impl Known {
    fn credential(&self) -> &[u8; CREDENTIAL_LEN] {
        let password = self.account.password().as_bytes();
        self.credential.get_or_init(|| credential(password))
    }
}

impl Security {
    /// The users of `config`, if there are any.
    pub(super) fn of(config: &ServerConfig) -> Option<Self> {
        let users: Vec<_> = config
            .users
            .iter()
            .map(|account| Known {
                account: account.clone(),
                credential: OnceLock::new(),
            })
            .collect();
        (!users.is_empty()).then_some(Self {
            users,
            seed: config.seed,
            session_ttl_s: config.aerospike.session_ttl_s,
        })
    }

    /// Computes all credentials, so that no login has to wait for its own.
    pub(super) fn prepare(&self) {
        for user in &self.users {
            user.credential();
        }
    }

    /// Answers a security message that came at `now_s`, in seconds since 1970; the user that is logged
    /// in by it.
    pub(super) fn answer(
        &self,
        body: &[u8],
        is_logged_in: bool,
        now_s: u64,
        out: &mut BytesMut,
    ) -> Option<&str> {
        let view = match AdminView::parse(body) {
            Ok(view) if view.scheme != 0 => return refuse(ResultCode::SecurityScheme, out),
            Ok(view) => view,
            Err(AdminError::ShortHeader { .. }) => {
                return refuse(ResultCode::SecurityCommand, out);
            }
            Err(_) => return refuse(ResultCode::SecurityField, out),
        };
        let checked = match view.command {
            Command::Login => self.user(&view).and_then(|user| user.has_sent(&view)),
            Command::Authenticate => {
                self.user(&view)
                    .and_then(|user| match view.field(AdminFieldKind::SessionToken) {
                        Some(token) => self.check_token(user, token, now_s).map(|()| user),
                        None => user.has_sent(&view),
                    })
            }
            Command::Other(_) => Err(ResultCode::SecurityCommand),
            _ if is_logged_in => Err(ResultCode::RoleViolation),
            _ => Err(ResultCode::NotAuthenticated),
        };
        let user = match checked {
            Ok(user) => user,
            Err(code) => return refuse(code, out),
        };
        if view.command == Command::Login {
            let token = self.token(user, now_s + u64::from(self.session_ttl_s));
            let fields = [
                AdminField {
                    kind: AdminFieldKind::SessionToken,
                    data: &token,
                },
                AdminField {
                    kind: AdminFieldKind::SessionTtl,
                    data: &self.session_ttl_s.to_be_bytes(),
                },
            ];
            put_admin(ResultCode::Ok, Command::Authenticate, &fields, out);
        } else {
            put_answer(ResultCode::Ok, out);
        }
        Some(user.account.name())
    }

    /// The user whom a message names.
    fn user(&self, view: &AdminView<'_>) -> Result<&Known, ResultCode> {
        let name = view
            .field(AdminFieldKind::User)
            .ok_or(ResultCode::SecurityField)?;
        self.users
            .iter()
            .find(|user| user.account.name().as_bytes() == name)
            .ok_or(ResultCode::User)
    }

    fn check_token(&self, user: &Known, token: &[u8], now_s: u64) -> Result<(), ResultCode> {
        let Some((end_s, _)) = token.split_first_chunk::<8>() else {
            return Err(ResultCode::Credential);
        };
        let end_s = u64::from_be_bytes(*end_s);
        if !is_same(&self.token(user, end_s), token) {
            Err(ResultCode::Credential)
        } else if end_s <= now_s {
            Err(ResultCode::ExpiredSession)
        } else {
            Ok(())
        }
    }

    /// The token of `user` that is good until `end_s`: that moment, then the signature.
    fn token(&self, user: &Known, end_s: u64) -> Vec<u8> {
        let signature = Sha256::new()
            .chain_update(self.seed.to_be_bytes())
            .chain_update(end_s.to_be_bytes())
            .chain_update(user.credential())
            .chain_update(user.account.name())
            .finalize();
        [&end_s.to_be_bytes()[..], &signature].concat()
    }
}

impl Known {
    /// The user, if the message brings the credential or the password.
    fn has_sent(&self, view: &AdminView<'_>) -> Result<&Self, ResultCode> {
        let hashed = view.field(AdminFieldKind::Credential);
        let clear = view.field(AdminFieldKind::ClearPassword);
        let is_right = match (hashed, clear) {
            (Some(hashed), _) => is_same(hashed, self.credential()),
            (None, Some(clear)) => is_same(clear, self.account.password().as_bytes()),
            (None, None) => return Err(ResultCode::SecurityField),
        };
        is_right.then_some(self).ok_or(ResultCode::Credential)
    }
}

/// Whether both are the same, in a time that does not tell where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn refuse<'a>(code: ResultCode, out: &mut BytesMut) -> Option<&'a str> {
    put_answer(code, out);
    None
}
