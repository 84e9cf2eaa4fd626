//! Limits on requests: throttles, sizes, blocked commands, databases; in virtual time to the
//! nanosecond, and over sockets.

use kvlab_mock_server::{MockServer, ServerBuilder, ServerConfig};

use crate::client::Client;
use crate::virtual_server::{Laboratory, MILLI};

fn lab(set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Laboratory {
    Laboratory::new(config(set))
}

fn config(set: impl FnOnce(ServerBuilder) -> ServerBuilder) -> ServerConfig {
    set(MockServer::builder()).into_config().unwrap()
}

/// A line of INFO.
fn field(info: &str, name: &str) -> String {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {info}"))
        .to_owned()
}

#[test]
fn a_delayed_request_is_answered_at_its_turn() {
    let mut lab = lab(|server| server.throttle("ops=1000/s,burst=2"));
    let client = lab.connect();
    // Two at once, one a millisecond later, one more a millisecond after that.
    lab.send(client, &b"GET a\r\n".repeat(4));
    assert_eq!(lab.heard_count(client), 2);
    assert_eq!(lab.until_due(), Some(MILLI));
    lab.pass(MILLI - 1);
    assert_eq!(lab.heard_count(client), 0);
    lab.pass(1);
    assert_eq!(lab.heard_count(client), 1);
    // What is not selected goes behind it, as replies keep their order, and takes no token.
    lab.send(client, b"PING\r\n");
    assert_eq!(lab.heard_count(client), 0);
    lab.pass(MILLI);
    assert_eq!(lab.heard(client), "(nil)\nPONG");
}

#[test]
fn clients_share_a_bucket_unless_each_address_has_one() {
    let mut shared = lab(|server| server.throttle("ops=1/s,then=error"));
    let (first, second) = (shared.connect(), shared.connect());
    assert_eq!(shared.ask(first, "GET a"), "(nil)");
    assert_eq!(
        shared.ask(second, "GET a"),
        "ERR max requests limit exceeded"
    );
    let mut server = lab(|server| {
        server.throttle("ops=1/s,per=client,of=write,then=error,text=ERR slow down, please")
    });
    let (first, second) = (server.connect(), server.connect());
    assert_eq!(server.ask(first, "SET a 1"), "OK");
    // Another connection from the same address.
    assert_eq!(server.ask(second, "SET a 2"), "ERR slow down, please");
    assert_eq!(server.ask(second, "GET a"), "1");
    let other = server.connect_from([127, 0, 0, 2]);
    assert_eq!(server.ask(other, "SET a 3"), "OK");
}

#[test]
fn a_quota_of_a_month_comes_back_evenly() {
    // 30 in 30 days: one a day.
    let mut lab = lab(|server| server.throttle("ops=30/30d,then=error"));
    let client = lab.connect();
    for _ in 0..30 {
        assert_eq!(lab.ask(client, "GET a"), "(nil)");
    }
    let day = 24 * 3_600 * 1_000 * MILLI;
    lab.pass(day - 1);
    assert!(lab.ask(client, "GET a").starts_with("ERR max requests"));
    lab.pass(1);
    assert_eq!(lab.ask(client, "GET a"), "(nil)");
    assert!(lab.ask(client, "GET a").starts_with("ERR max requests"));
    let info = lab.ask(client, "INFO everything");
    assert_eq!(field(&info, "errorstat_ERR"), "count=2");
    assert_eq!(field(&info, "total_error_replies"), "2");
    let calls = field(&info, "cmdstat_get");
    assert!(calls.starts_with("calls=31,"), "{calls}");
    assert!(calls.contains("rejected_calls=2,"), "{calls}");
}

#[test]
fn bytes_of_requests_and_replies_are_counted() {
    let mut out = lab(|server| server.throttle("out=1KB/s,burst=100B"));
    let client = out.connect();
    assert_eq!(out.ask(client, "SETRANGE a 192 xxxx"), "196");
    assert_eq!(out.ask(client, "GET a"), "");
    // `:196` and its line end took 6 of 100; `$196`, 196 bytes and two line ends are 204: 110 are
    // missing, and one comes each millisecond.
    assert_eq!(out.until_due(), Some(110 * MILLI));
    out.pass(110 * MILLI);
    assert_eq!(out.heard_count(client), 1);

    let mut input = lab(|server| server.throttle("in=1KB/s,burst=20B,of=all"));
    let client = input.connect();
    // 21 bytes with the line end, and then 7.
    assert_eq!(input.ask(client, "SET aaaa 1234 PX 77"), "");
    assert_eq!(input.until_due(), Some(MILLI));
    input.pass(MILLI);
    assert_eq!(input.heard(client), "OK");
    assert_eq!(input.ask(client, "GET b"), "");
    assert_eq!(input.until_due(), Some(7 * MILLI));
}

#[test]
fn nothing_is_answered_behind_a_dropped_request() {
    let mut lab = lab(|server| server.throttle("ops=1000/s,burst=1,then=drop"));
    let (client, other) = (lab.connect(), lab.connect());
    lab.send(client, b"GET a\r\nGET a\r\nPING\r\n");
    assert_eq!(lab.heard_count(client), 1);
    lab.pass(1_000 * MILLI);
    // The tokens are back, the connection stays, and nothing comes.
    lab.send(client, b"PING\r\nGET a\r\n");
    lab.pass(1_000 * MILLI);
    assert_eq!(lab.heard_count(client), 0);
    assert!(!lab.is_closed(client));
    assert_eq!(lab.ask(other, "GET a"), "(nil)");
    lab.hang_up(client);
    assert!(lab.is_closed(client));
}

#[test]
fn a_request_that_is_too_large_is_refused_and_the_next_one_served() {
    let mut lab = lab(|server| {
        server
            .size_limit("key=4B")
            .size_limit("value=10B,text=ERR {actual} of {limit}")
            .size_limit("arguments=5")
    });
    let client = lab.connect();
    assert_eq!(lab.ask(client, "SET abcd 1234567890"), "OK");
    assert_eq!(
        lab.ask(client, "SET abcde 1"),
        "ERR max key size exceeded. Limit: 4 bytes, Actual: 5 bytes"
    );
    assert_eq!(lab.ask(client, "SET a 12345678901"), "ERR 11 of 10");
    // The second key of several, a value that is not one of them.
    assert!(lab.ask(client, "DEL a abcde").starts_with("ERR max key"));
    assert_eq!(lab.ask(client, "MSET a 12345678901 b 1"), "ERR 11 of 10");
    assert!(
        lab.ask(client, "MSET a 1 bcdef 1")
            .starts_with("ERR max key")
    );
    assert_eq!(
        lab.ask(client, "DEL a b c d e"),
        "ERR max number of arguments exceeded. Limit: 5, Actual: 6"
    );
    assert_eq!(lab.ask(client, "GET abcd"), "1234567890");
    // A refusal in a transaction takes it down.
    assert_eq!(lab.ask(client, "MULTI"), "OK");
    assert_eq!(lab.ask(client, "SET a 12345678901"), "ERR 11 of 10");
    assert!(lab.ask(client, "EXEC").starts_with("EXECABORT"));
}

#[test]
fn what_is_announced_too_long_is_refused_before_it_comes_and_not_kept() {
    let mut lab = lab(|server| server.size_limit("request=100B"));
    let client = lab.connect();
    // Up to the line of the value there are 30 bytes; with 1,000,000 and the line end: 1,000,032.
    lab.send(client, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n");
    let text = "ERR max request size exceeded. Limit: 100 bytes, Actual: 1000032 bytes";
    assert_eq!(lab.heard(client), text);
    for _ in 0..100 {
        lab.send(client, &[b'*'; 10_000]);
        assert_eq!(lab.heard_count(client), 0);
    }
    lab.send(client, b"\r\nPING\r\n");
    assert_eq!(lab.heard(client), "PONG");
    assert_eq!(lab.ask(client, "EXISTS k"), "0");
    // Cut at every place, with arguments behind the one that is too long.
    let whole = [
        &b"*3\r\n$3\r\nSET\r\n$90\r\n"[..],
        &[b'x'; 90],
        b"\r\n$2\r\nab\r\nPING\r\n",
    ]
    .concat();
    for cut in 1..whole.len() {
        lab.send(client, &whole[..cut]);
        lab.send(client, &whole[cut..]);
        let heard = lab.heard(client);
        assert!(heard.ends_with("bytes\nPONG"), "cut at {cut}: {heard}");
    }
    let inline = format!("SET k {}", "x".repeat(100));
    assert!(lab.ask(client, &inline).starts_with("ERR max request size"));
}

#[test]
fn an_oversized_request_waits_for_its_turn_and_is_passed_over_meanwhile() {
    let mut lab = lab(|server| {
        server
            .size_limit("request=100B")
            .throttle("ops=1000/s,burst=1")
    });
    let client = lab.connect();
    lab.send(client, b"GET a\r\nGET a\r\n*2\r\n$3\r\nGET\r\n$500\r\n");
    lab.send(client, &[b'x'; 502]);
    lab.send(client, b"PING\r\n");
    assert_eq!(lab.heard(client), "(nil)");
    lab.pass(MILLI);
    let heard = lab.heard(client);
    let text = "ERR max request size exceeded. Limit: 100 bytes, Actual: 521 bytes";
    assert_eq!(heard, format!("(nil)\n{text}\nPONG"));
}

#[test]
fn so_many_requests_may_be_under_way_and_no_more() {
    let mut lab = lab(|server| server.latency("constant(1ms)").size_limit("pipeline=3"));
    let client = lab.connect();
    lab.send(client, &b"GET a\r\n".repeat(5));
    lab.pass(MILLI);
    let text = "ERR max pipeline depth exceeded. Limit: 3, Actual:";
    let heard = lab.heard(client);
    assert_eq!(heard, format!("(nil)\n(nil)\n(nil)\n{text} 4\n{text} 5"));
    lab.send(client, &b"GET a\r\n".repeat(3));
    lab.pass(MILLI);
    assert_eq!(lab.heard(client), "(nil)\n(nil)\n(nil)");
}

#[test]
fn a_blocked_command_does_not_exist() {
    // Texts of redis-server 7.0.15 with `rename-command CONFIG ""`.
    let mut lab = lab(|server| server.block("config").block("client|kill").block("bgsave"));
    let client = lab.connect();
    assert_eq!(
        lab.ask(client, "CONFIG GET maxclients"),
        "ERR unknown command 'CONFIG', with args beginning with: 'GET' 'maxclients' "
    );
    assert_eq!(
        lab.ask(client, "CLIENT KILL 1.1.1.1:1"),
        "ERR unknown subcommand 'KILL'. Try CLIENT HELP."
    );
    assert_eq!(lab.ask(client, "CLIENT GETNAME"), "(nil)");
    assert!(lab.ask(client, "BGSAVE").starts_with("ERR unknown command"));
    assert_eq!(lab.ask(client, "COMMAND INFO config"), "[(nil)]");
    assert_eq!(
        lab.ask(client, "COMMAND LIST FILTERBY PATTERN config*"),
        "[]"
    );
    assert_eq!(lab.ask(client, "MULTI"), "OK");
    assert!(lab.ask(client, "CONFIG GET x").starts_with("ERR unknown"));
    assert_eq!(
        lab.ask(client, "EXEC"),
        "EXECABORT Transaction discarded because of previous errors."
    );
    let info = lab.ask(client, "INFO everything");
    assert_eq!(field(&info, "errorstat_ERR"), "count=4");
    assert_eq!(field(&info, "errorstat_EXECABORT"), "count=1");
}

#[test]
fn a_blocked_command_is_refused_as_by_an_acl_or_in_words_of_ones_own() {
    // As redis-server 7.0.15 after `ACL SETUSER default -config -client|kill`: arity comes first.
    let noperm = |version: &str| {
        let noperm = "noperm".parse().unwrap();
        let server = |server: ServerBuilder| {
            let server = server
                .block("config")
                .block("client|kill")
                .block_form(noperm);
            server.redis_version(version)
        };
        lab(server)
    };
    let mut old = noperm("7.0.15");
    let client = old.connect();
    for (command, reply) in [
        (
            "CONFIG GET maxclients",
            "NOPERM this user has no permissions to run the 'config|get' command",
        ),
        (
            "CLIENT KILL 1.1.1.1:1",
            "NOPERM this user has no permissions to run the 'client|kill' command",
        ),
        (
            "CLIENT KILL",
            "ERR wrong number of arguments for 'client|kill' command",
        ),
        (
            "CONFIG NOSUCH",
            "ERR unknown subcommand 'NOSUCH'. Try CONFIG HELP.",
        ),
    ] {
        assert_eq!(old.ask(client, command), reply);
    }
    let info = old.ask(client, "INFO everything");
    assert_eq!(field(&info, "errorstat_NOPERM"), "count=2");
    let calls = field(&info, "cmdstat_config|get");
    assert!(
        calls.contains("calls=0,") && calls.contains("rejected_calls=1,"),
        "{calls}"
    );
    assert_eq!(
        old.ask(client, "COMMAND LIST FILTERBY PATTERN config"),
        "[config]"
    );
    let mut new = noperm("7.2.4");
    let client = new.connect();
    assert_eq!(
        new.ask(client, "CONFIG GET maxclients"),
        "NOPERM User default has no permissions to run the 'config|get' command"
    );
    let mut own = lab(|server| {
        let text = "ERR command {command} is disabled".parse().unwrap();
        server.block("config").block("debug").block_form(text)
    });
    let client = own.connect();
    assert_eq!(
        own.ask(client, "CONFIG GET x"),
        "ERR command config|get is disabled"
    );
    // Not a command of this server, but blocked all the same.
    assert_eq!(
        own.ask(client, "DEBUG SLEEP 0"),
        "ERR command debug is disabled"
    );
}

#[test]
fn there_are_as_many_databases_as_were_asked_for() {
    let mut lab = lab(|server| server.databases(1));
    let client = lab.connect();
    assert_eq!(lab.ask(client, "SELECT 0"), "OK");
    assert_eq!(lab.ask(client, "SELECT 1"), "ERR DB index is out of range");
    assert_eq!(lab.ask(client, "CONFIG GET databases"), "[databases 1]");
}

#[test]
fn a_throttle_delays_refuses_and_drops_over_a_socket() {
    let server = MockServer::builder()
        .throttle("ops=100/s,burst=5,of=redis.get")
        .throttle("ops=1/h,burst=2,of=redis.set,then=error,text=ERR quota used up")
        .throttle("ops=1/h,burst=1,of=redis.del,then=drop")
        .start()
        .unwrap();
    let address = server.redis_addr().unwrap();
    let mut client = Client::connect(address);
    let clock = kvlab_timing::Clock::real();
    let begun = clock.now();
    // 5 at once and 20 at 100 per second: the last one 200 ms after the first.
    client.ask_all(&["GET a"; 25]);
    assert!(clock.now().saturating_since(begun) >= 199 * MILLI);
    assert_eq!(client.ask_all(&["SET a 1", "SET a 2"]), "OK");
    assert_eq!(client.ask("SET a 3"), "ERR quota used up");
    assert_eq!(client.ask("GET a"), "2");
    assert_eq!(client.ask("DEL b"), "0");
    client.send("DEL b\r\nPING");
    assert!(client.is_silent());
    let counts = server.truth().stats.counts;
    // A slow machine leaves time for tokens to come.
    assert!((1..=21).contains(&counts.delayed), "{counts:?}");
    assert_eq!((counts.throttled, counts.dropped), (1, 2));
    assert_eq!(Client::connect(address).ask("PING"), "PONG");
}

#[test]
fn sizes_and_blocked_commands_are_refused_over_a_socket() {
    let server = MockServer::builder()
        .size_limit("request=1KB")
        .block("config")
        .start()
        .unwrap();
    let mut client = Client::connect(server.redis_addr().unwrap());
    let set = format!(
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3000000\r\n{}",
        "x".repeat(3_000_000)
    );
    client.send(&set);
    let reply = client.reply().unwrap();
    assert!(
        reply.starts_with("ERR max request size exceeded. Limit: 1000"),
        "{reply}"
    );
    assert_eq!(client.ask("EXISTS a"), "0");
    assert!(
        client
            .ask("CONFIG GET *")
            .starts_with("ERR unknown command 'CONFIG'")
    );
    let counts = server.truth().stats.counts;
    assert_eq!((counts.too_large, counts.blocked), (1, 1));
}
