//! Logging in on the Aerospike side: what each security message is answered, and what a connection may
//! do before and after it.

// A test that unwraps or indexes wrongly fails, as it should.

use std::net::SocketAddr;

use bytes::BytesMut;
use kvlab_mock_server::config::AerospikeConfig;
use kvlab_mock_server::dialect::Listener;
use kvlab_mock_server::event::ConnId;
use kvlab_mock_server::virtual_shell::VirtualServer;
use kvlab_mock_server::{Account, ServerConfig};
use kvlab_protocol::aerospike::admin::{
    AdminField, AdminFieldKind, AdminView, Command, put_admin, put_authenticate, put_login,
};
use kvlab_protocol::aerospike::credential::credential;
use kvlab_protocol::aerospike::info;
use kvlab_protocol::aerospike::message::{
    FieldKind, Info1, Info3, MessageHeader, MessageView, put_message_frame,
};
use kvlab_protocol::aerospike::proto::{Kind, split_frame};
use kvlab_protocol::aerospike::result_code::ResultCode;
use kvlab_timing::Stamp;

/// A server under virtual time with the user alice, whose tokens live for an hour.
struct World {
    server: VirtualServer,
    now: Stamp,
}

impl World {
    fn new() -> Self {
        let now = Stamp::from_nanos(0);
        let config = ServerConfig {
            users: vec![
                Account::new("alice", "password").unwrap(),
                Account::new("bob", "aerospike").unwrap(),
            ],
            aerospike: AerospikeConfig {
                session_ttl_s: 3600,
                ..AerospikeConfig::default()
            },
            ..ServerConfig::default()
        };
        Self {
            server: VirtualServer::new(config, now),
            now,
        }
    }

    fn connect(&mut self) -> ConnId {
        let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
        self.server.accept(self.now, Listener::Aerospike, peer)
    }

    fn send(&mut self, connection: ConnId, request: &[u8]) -> Vec<u8> {
        self.server.handle_bytes(self.now, connection, request);
        let mut answer = Vec::new();
        while let Some(output) = self.server.poll_output() {
            assert!(!output.close, "the connection stays usable");
            answer.extend_from_slice(&output.bytes);
        }
        answer
    }

    /// The result of a security message and the token, if it brought one.
    fn secure(&mut self, connection: ConnId, request: &[u8]) -> (ResultCode, Option<Vec<u8>>) {
        let answer = self.send(connection, request);
        let frame = split_frame(&answer).unwrap().unwrap();
        assert_eq!(frame.header.kind, Kind::Security);
        let view = AdminView::parse(frame.body).unwrap();
        let token = view.field(AdminFieldKind::SessionToken);
        let ttl = view.field(AdminFieldKind::SessionTtl);
        assert_eq!(ttl.is_some(), token.is_some());
        assert!(ttl.is_none_or(|ttl| ttl == 3600_u32.to_be_bytes()));
        (view.result, token.map(<[u8]>::to_vec))
    }

    fn log_in(
        &mut self,
        connection: ConnId,
        user: &str,
        password: &str,
    ) -> (ResultCode, Option<Vec<u8>>) {
        let mut out = BytesMut::new();
        put_login(user.as_bytes(), &credential(password.as_bytes()), &mut out);
        self.secure(connection, &out)
    }

    fn show_token(&mut self, connection: ConnId, user: &str, token: &[u8]) -> ResultCode {
        let mut out = BytesMut::new();
        put_authenticate(user.as_bytes(), token, &mut out);
        self.secure(connection, &out).0
    }

    fn command(&mut self, connection: ConnId, command: Command) -> ResultCode {
        let mut out = BytesMut::new();
        let fields = [AdminField {
            kind: AdminFieldKind::User,
            data: b"carol",
        }];
        put_admin(ResultCode::Ok, command, &fields, &mut out);
        self.secure(connection, &out).0
    }

    fn get(&mut self, connection: ConnId) -> ResultCode {
        let header = MessageHeader {
            info1: Info1::READ | Info1::GET_ALL,
            ..MessageHeader::EMPTY
        };
        let mut out = BytesMut::new();
        put_message_frame(&mut out, &header, |message| {
            message.field(FieldKind::Namespace, b"test");
            message.field(FieldKind::Digest, &[7; 20]);
        });
        let answer = self.send(connection, &out);
        let frame = split_frame(&answer).unwrap().unwrap();
        MessageView::parse(frame.body).unwrap().header().result
    }

    fn info(&mut self, connection: ConnId, commands: &[&str]) -> String {
        let mut out = BytesMut::new();
        info::put_request(commands.iter().copied(), &mut out);
        let answer = self.send(connection, &out);
        let frame = split_frame(&answer).unwrap().unwrap();
        assert_eq!(frame.header.kind, Kind::Info);
        String::from_utf8(frame.body.to_vec()).unwrap()
    }
}

#[test]
fn nothing_works_before_a_login_and_everything_after_it() {
    let mut world = World::new();
    let client = world.connect();
    assert_eq!(world.get(client), ResultCode::NotAuthenticated);
    let refused = "ERROR:80:not authenticated\n";
    assert_eq!(world.info(client, &["node", "build"]), refused);
    assert_eq!(
        world.command(client, Command::QueryUsers),
        ResultCode::NotAuthenticated
    );
    assert_eq!(world.log_in(client, "alice", "password").0, ResultCode::Ok);
    assert_eq!(world.get(client), ResultCode::NotFound);
    assert_eq!(world.info(client, &["node"]), "node\tA1\n");
    // Whoever is in stays in after a failed attempt to be somebody else.
    assert_eq!(world.log_in(client, "bob", "x").0, ResultCode::Credential);
    assert_eq!(world.get(client), ResultCode::NotFound);
}

#[test]
fn wrong_logins_say_what_is_wrong() {
    let mut world = World::new();
    let client = world.connect();
    assert_eq!(
        world.log_in(client, "alice", "aerospike"),
        (ResultCode::Credential, None)
    );
    assert_eq!(
        world.log_in(client, "carol", "password"),
        (ResultCode::User, None)
    );
    for (scheme, command, fields, result) in [
        (1, 20, 0, ResultCode::SecurityScheme),
        (0, 77, 0, ResultCode::SecurityCommand),
        (0, 20, 0, ResultCode::SecurityField),
        (0, 20, 9, ResultCode::SecurityField),
    ] {
        let mut message = vec![2, 2, 0, 0, 0, 0, 0, 16, scheme, 0, command, fields];
        message.extend([0; 12]);
        assert_eq!(world.secure(client, &message).0, result);
    }
    assert_eq!(world.get(client), ResultCode::NotAuthenticated);
}

#[test]
fn a_batch_without_a_login_ends_with_its_last_message() {
    let mut world = World::new();
    let client = world.connect();
    let header = MessageHeader {
        info1: Info1::BATCH,
        ..MessageHeader::EMPTY
    };
    let mut out = BytesMut::new();
    put_message_frame(&mut out, &header, |message| {
        message.field(FieldKind::Batch, &[0, 0, 0, 0, 0]);
    });
    let answer = world.send(client, &out);
    let frame = split_frame(&answer).unwrap().unwrap();
    let view = MessageView::parse(frame.body).unwrap();
    assert_eq!(view.header().result, ResultCode::NotAuthenticated);
    assert!(view.header().info3.contains(Info3::LAST));
}

#[test]
fn a_token_opens_other_connections_until_it_ends() {
    let mut world = World::new();
    let first = world.connect();
    let (_, token) = world.log_in(first, "alice", "password");
    let token = token.unwrap();
    let second = world.connect();
    assert_eq!(world.show_token(second, "alice", &token), ResultCode::Ok);
    assert_eq!(world.get(second), ResultCode::NotFound);
    let third = world.connect();
    let mut forged = token.clone();
    forged[3] ^= 1;
    for (user, token, result) in [
        ("bob", &token, ResultCode::Credential),
        ("carol", &token, ResultCode::User),
        ("alice", &forged, ResultCode::Credential),
        ("alice", &token[..7].to_vec(), ResultCode::Credential),
    ] {
        assert_eq!(world.show_token(third, user, token), result, "{user}");
    }
    assert_eq!(world.get(third), ResultCode::NotAuthenticated);
    world.now = Stamp::from_nanos(3_600_000_000_000);
    assert_eq!(
        world.show_token(third, "alice", &token),
        ResultCode::ExpiredSession
    );
    // A connection that is in stays in.
    assert_eq!(world.get(second), ResultCode::NotFound);
    let (result, newer) = world.log_in(third, "alice", "password");
    assert_eq!(result, ResultCode::Ok);
    assert_ne!(newer.unwrap(), token);
}

#[test]
fn older_and_external_clients_log_in_too() {
    let mut world = World::new();
    let user = AdminField {
        kind: AdminFieldKind::User,
        data: b"alice",
    };
    let hash = credential(b"password");
    let hashed = AdminField {
        kind: AdminFieldKind::Credential,
        data: &hash,
    };
    let clear = AdminField {
        kind: AdminFieldKind::ClearPassword,
        data: b"password",
    };
    for (command, fields) in [
        (Command::Authenticate, &[user, hashed][..]),
        (Command::Login, &[user, hashed, clear]),
        (Command::Login, &[user, clear]),
    ] {
        let client = world.connect();
        let mut out = BytesMut::new();
        put_admin(ResultCode::Ok, command, fields, &mut out);
        assert_eq!(world.secure(client, &out).0, ResultCode::Ok);
        assert_eq!(world.get(client), ResultCode::NotFound);
    }
}

#[test]
fn users_may_not_change_users() {
    let mut world = World::new();
    let client = world.connect();
    world.log_in(client, "alice", "password");
    for command in [
        Command::CreateUser,
        Command::DropUser,
        Command::ChangePassword,
        Command::GrantRoles,
        Command::QueryUsers,
        Command::QueryRoles,
    ] {
        assert_eq!(world.command(client, command), ResultCode::RoleViolation);
    }
}
