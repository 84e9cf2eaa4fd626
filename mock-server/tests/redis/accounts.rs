//! Users: what they are told in each version, who has to log in, what is counted. What 7.0.15 answers
//! in detail is in the case tables of the workspace's `tests`.

use kvlab_mock_server::{Account, MockServer, ServerConfig};

use crate::client::Client;
use crate::virtual_server::Laboratory;

fn with_users(version: &str, users: &[&str]) -> ServerConfig {
    let mut config = ServerConfig {
        users: users
            .iter()
            .map(|text| text.parse::<Account>().unwrap())
            .collect(),
        ..ServerConfig::default()
    };
    config.redis.version = version.parse().unwrap();
    config
}

#[test]
fn with_users_a_client_has_to_log_in_as_one_of_them() {
    let mut lab = Laboratory::new(with_users("7.2.4", &["alice:s3:cret", "bob:b"]));
    let client = lab.connect();
    assert_eq!(lab.ask(client, "PING"), "NOAUTH Authentication required.");
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    for login in [
        "AUTH s3:cret",
        "AUTH default s3:cret",
        "AUTH alice b",
        "AUTH carol b",
        "HELLO 3 AUTH bob x",
    ] {
        assert_eq!(lab.ask(client, login), wrong, "{login}");
    }
    assert_eq!(lab.ask(client, "AUTH alice s3:cret"), "OK");
    assert_eq!(lab.ask(client, "ACL WHOAMI"), "alice");
    assert_eq!(lab.ask(client, "SET a 1"), "OK");
    assert!(lab.ask(client, "CLIENT INFO").contains(" user=alice "));
    assert_eq!(lab.ask(client, "AUTH bob b"), "OK");
    assert_eq!(lab.ask(client, "ACL USERS"), "[alice bob default]");
    assert_eq!(lab.ask(client, "RESET"), "RESET");
    assert_eq!(lab.ask(client, "GET a"), "NOAUTH Authentication required.");
}

#[test]
fn a_password_of_the_default_user_needs_no_name() {
    let mut lab = Laboratory::new(with_users("7.0.15", &["default:d"]));
    let client = lab.connect();
    assert_eq!(lab.ask(client, "PING"), "NOAUTH Authentication required.");
    assert_eq!(lab.ask(client, "AUTH d"), "OK");
    assert_eq!(lab.ask(client, "PING"), "PONG");
}

#[test]
fn a_7_2_words_and_counts_what_it_denies() {
    let mut lab = Laboratory::new(with_users("7.2.4", &["admin:p"]));
    let (admin, client) = (lab.connect(), lab.connect());
    lab.ask(admin, "AUTH admin p");
    assert_eq!(
        lab.ask(
            admin,
            "ACL SETUSER app on >a ~app:* %R~shared:* +@all -@dangerous"
        ),
        "OK"
    );
    lab.ask(client, "AUTH app x");
    assert_eq!(lab.ask(client, "AUTH app a"), "OK");
    for (command, reply) in [
        ("SET app:1 x", "OK"),
        ("GET shared:1", "(nil)"),
        ("SET shared:1 x", "NOPERM No permissions to access a key"),
        ("MGET app:1 other", "NOPERM No permissions to access a key"),
        (
            "CONFIG GET port",
            "NOPERM User app has no permissions to run the 'config|get' command",
        ),
        (
            "KEYS *",
            "NOPERM User app has no permissions to run the 'keys' command",
        ),
    ] {
        assert_eq!(lab.ask(client, command), reply, "{command}");
    }
    for (command, reply) in [
        ("GET app:1", "OK"),
        ("GET x", "User app has no permissions to access the 'x' key"),
        (
            "FLUSHALL",
            "User app has no permissions to run the 'flushall' command",
        ),
    ] {
        assert_eq!(lab.ask(admin, &format!("ACL DRYRUN app {command}")), reply);
    }
    let stats = lab.ask(admin, "INFO stats");
    for line in [
        "acl_access_denied_auth:1\r\n",
        "acl_access_denied_cmd:2\r\n",
        "acl_access_denied_key:2\r\n",
        "acl_access_denied_channel:0\r\n",
    ] {
        assert!(stats.contains(line), "{line} in {stats}");
    }
    let errors = lab.ask(admin, "INFO errorstats");
    assert!(errors.contains("errorstat_NOPERM:count=4\r\n"), "{errors}");
    assert!(
        errors.contains("errorstat_WRONGPASS:count=1\r\n"),
        "{errors}"
    );
    let log = lab.ask(admin, "ACL LOG 1");
    assert!(log.contains("reason command context toplevel object keys username app"));
    assert!(log.contains("entry-id 4 timestamp-created "), "{log}");
    assert!(
        lab.ask(admin, "ACL LIST")
            .contains("user app on sanitize-payload #"),
    );
}

#[test]
fn a_7_0_counts_nothing_that_it_does_not_know() {
    let mut lab = Laboratory::new(with_users("7.0.15", &[]));
    let client = lab.connect();
    assert!(!lab.ask(client, "INFO stats").contains("acl_access"));
    let mut old = Laboratory::new(with_users("5.0.0", &[]));
    let client = old.connect();
    assert!(
        old.ask(client, "ACL WHOAMI")
            .starts_with("ERR unknown command 'ACL'")
    );
}

#[test]
fn connections_of_a_deleted_user_end() {
    let mut lab = Laboratory::new(with_users("7.2.4", &["alice:a", "bob:b"]));
    let (alice, bob, second) = (lab.connect(), lab.connect(), lab.connect());
    lab.ask(alice, "AUTH alice a");
    lab.ask(bob, "AUTH bob b");
    lab.ask(second, "AUTH alice a");
    assert_eq!(lab.ask(bob, "ACL DELUSER alice nobody"), "1");
    assert!(lab.is_closed(alice) && lab.is_closed(second));
    assert_eq!(lab.ask(bob, "PING"), "PONG");
    assert_eq!(lab.ask(bob, "ACL DELUSER bob"), "1");
    assert!(lab.is_closed(bob));
}

#[test]
fn the_connections_of_a_user_are_killed_by_name() {
    let mut lab = Laboratory::new(with_users("7.2.4", &["alice:a", "bob:b"]));
    let (alice, bob) = (lab.connect(), lab.connect());
    lab.ask(alice, "AUTH alice a");
    lab.ask(bob, "AUTH bob b");
    assert_eq!(lab.ask(bob, "CLIENT KILL USER alice"), "1");
    assert!(lab.is_closed(alice) && !lab.is_closed(bob));
}

#[test]
fn a_program_does_as_it_likes_without_a_login() {
    let server = MockServer::builder().user("alice", "a").start().unwrap();
    server.redis().set("k", "v").unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    assert_eq!(client.ask("GET k"), "NOAUTH Authentication required.");
    assert_eq!(client.ask("AUTH alice a"), "OK");
    assert_eq!(client.ask("GET k"), "v");
}

#[test]
fn illegal_users_are_refused_at_the_start() {
    let error = MockServer::builder().user("a b", "x").start().unwrap_err();
    assert!(error.to_string().contains("a user is 'a b'"), "{error}");
    let twice = with_users("7.2.4", &["a:1", "a:2"]);
    let error = MockServer::start(twice).unwrap_err();
    assert_eq!(error.to_string(), "a user is 'a'; expected each name once");
}
