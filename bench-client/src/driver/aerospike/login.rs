//! Logging in, as the C client does.
//!
//! | the node | is sent | what follows |
//! |---|---|---|
//! | has given no token yet | a login with the hashed password | its token is kept |
//! | has given a token | that token | |
//! | refuses the token, as one that is too old | a login | its token is kept |
//! | refuses the login | | the run ends |
//! | says that there are no users | | the connection is used as it is |
//!
//! Nothing here looks at a clock: a token is used until a node refuses it.

use bytes::BytesMut;
use kvlab_protocol::aerospike::admin::{AdminFieldKind, AdminView, put_authenticate, put_login};
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;

use crate::driver::{GroupId, Refusal};
use crate::settings::AerospikeLogin;

/// The user, and the token of each node.
#[derive(Debug)]
pub(super) struct Logins {
    login: Option<AerospikeLogin>,
    /// By the number of the node's group.
    tokens: Vec<Option<Vec<u8>>>,
}

/// How far the login of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// Nothing was sent yet to the node of this group.
    Begins(GroupId),
    /// A token was sent.
    Token(GroupId),
    /// A login was sent.
    Login(GroupId),
    /// It is done, or there is none to do.
    Done,
}

impl Entry {
    /// Whether it is not done yet.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self != Self::Done
    }
}

impl Logins {
    /// The logins of `login`; `None` sends none.
    pub(super) fn new(login: Option<&AerospikeLogin>) -> Self {
        if let Some(login) = login {
            // Before the run begins, not when the first connection is there.
            let _ = login.credential();
        }
        Self {
            login: login.cloned(),
            tokens: Vec::new(),
        }
    }

    /// A new connection to the node of `group`.
    pub(super) fn enter(&self, group: GroupId) -> Entry {
        match self.login {
            Some(_) => Entry::Begins(group),
            None => Entry::Done,
        }
    }

    /// Appends what is to be sent next; false when there is nothing.
    pub(super) fn ask(&mut self, entry: &mut Entry, out: &mut BytesMut) -> bool {
        let (Entry::Begins(group), Some(login)) = (*entry, &self.login) else {
            return false;
        };
        let user = login.user().as_bytes();
        let token = self.tokens.get(usize::from(group.0));
        *entry = match token.and_then(Option::as_ref) {
            Some(token) => {
                put_authenticate(user, token, out);
                Entry::Token(group)
            }
            None => {
                put_login(user, login.credential(), out);
                Entry::Login(group)
            }
        };
        true
    }

    /// Takes the answer.
    pub(super) fn take(&mut self, entry: &mut Entry, frame: &[u8]) -> Result<(), Refusal> {
        let body = match split_frame(frame) {
            Ok(Some(frame)) if frame.header.kind == Kind::Security => Some(frame.body),
            _ => None,
        };
        let Some(view) = body.and_then(|body| AdminView::parse(body).ok()) else {
            return Err(refusal("the node answered a login with something else"));
        };
        match (*entry, view.result) {
            (Entry::Login(group), ResultCode::Ok) => {
                self.keep(group, view.field(AdminFieldKind::SessionToken));
                *entry = Entry::Done;
            }
            (_, ResultCode::Ok | ResultCode::SecurityNotEnabled) => *entry = Entry::Done,
            (Entry::Token(group), _) => {
                self.keep(group, None);
                *entry = Entry::Begins(group);
            }
            (_, code) => return Err(refusal(&code.to_string())),
        }
        Ok(())
    }

    fn keep(&mut self, group: GroupId, token: Option<&[u8]>) {
        let place = usize::from(group.0);
        if self.tokens.len() <= place {
            self.tokens.resize(place + 1, None);
        }
        if let Some(kept) = self.tokens.get_mut(place) {
            *kept = token.map(<[u8]>::to_vec);
        }
    }
}

fn refusal(text: &str) -> Refusal {
    Refusal {
        login: true,
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use kvlab_protocol::aerospike::admin::{AdminField, Command, put_admin, put_answer};

    use super::*;

    const NODE: GroupId = GroupId(0);

    /// What is sent next: the command and the field that proves who it is.
    fn sent(logins: &mut Logins, entry: &mut Entry) -> (Command, Vec<u8>) {
        let mut out = BytesMut::new();
        assert!(logins.ask(entry, &mut out));
        let view = AdminView::parse(&out[8..]).unwrap();
        assert_eq!(view.field(AdminFieldKind::User), Some(&b"alice"[..]));
        let proof = view.fields().nth(1).unwrap().data.to_vec();
        (view.command, proof)
    }

    fn answer(logins: &mut Logins, entry: &mut Entry, code: ResultCode) -> Result<(), Refusal> {
        let mut out = BytesMut::new();
        put_answer(code, &mut out);
        logins.take(entry, &out)
    }

    fn grant(logins: &mut Logins, entry: &mut Entry, token: &[u8]) {
        let mut out = BytesMut::new();
        let fields = [
            AdminField {
                kind: AdminFieldKind::SessionToken,
                data: token,
            },
            AdminField {
                kind: AdminFieldKind::SessionTtl,
                data: &60_u32.to_be_bytes(),
            },
        ];
        put_admin(ResultCode::Ok, Command::Authenticate, &fields, &mut out);
        logins.take(entry, &out).unwrap();
        assert_eq!(*entry, Entry::Done);
        assert!(!logins.ask(entry, &mut out));
    }

    fn alice() -> Logins {
        Logins::new(Some(&AerospikeLogin::new("alice", "password")))
    }

    #[test]
    fn the_first_connection_logs_in_and_the_others_show_its_token() {
        let mut logins = alice();
        let mut first = logins.enter(NODE);
        let hash = b"$2a$10$7EqJtq98hPqEX7fNZaFWoOqUH6KN8IKy3Yk5Kz..RHGKNAUCoP/LG";
        assert_eq!(
            sent(&mut logins, &mut first),
            (Command::Login, hash.to_vec())
        );
        grant(&mut logins, &mut first, b"token");
        let mut second = logins.enter(NODE);
        let expected = (Command::Authenticate, b"token".to_vec());
        assert_eq!(sent(&mut logins, &mut second), expected);
        answer(&mut logins, &mut second, ResultCode::Ok).unwrap();
        assert_eq!(second, Entry::Done);
        // Another node gives a token of its own.
        let mut other = logins.enter(GroupId(3));
        assert_eq!(sent(&mut logins, &mut other).0, Command::Login);
    }

    #[test]
    fn a_token_that_is_refused_is_replaced_by_a_new_login() {
        let mut logins = alice();
        let mut first = logins.enter(NODE);
        sent(&mut logins, &mut first);
        grant(&mut logins, &mut first, b"old");
        let mut second = logins.enter(NODE);
        sent(&mut logins, &mut second);
        answer(&mut logins, &mut second, ResultCode::ExpiredSession).unwrap();
        assert_eq!(sent(&mut logins, &mut second).0, Command::Login);
        grant(&mut logins, &mut second, b"new");
        let mut third = logins.enter(NODE);
        assert_eq!(sent(&mut logins, &mut third).1, b"new");
    }

    #[test]
    fn a_refused_login_is_told_and_a_server_without_users_lets_everybody_in() {
        let mut logins = alice();
        let mut entry = logins.enter(NODE);
        sent(&mut logins, &mut entry);
        let refused = answer(&mut logins, &mut entry, ResultCode::Credential).unwrap_err();
        assert!(refused.login);
        assert_eq!(refused.text, "invalid credential (65)");
        let mut entry = logins.enter(NODE);
        sent(&mut logins, &mut entry);
        answer(&mut logins, &mut entry, ResultCode::SecurityNotEnabled).unwrap();
        assert_eq!(entry, Entry::Done);
        assert_eq!(Logins::new(None).enter(NODE), Entry::Done);
    }
}
