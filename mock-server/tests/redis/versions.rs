//! What depends on the version that a server pretends to be.

use crate::virtual_server::Laboratory;

#[test]
fn the_default_is_a_7_2() {
    let mut lab = Laboratory::of_version(7, 2, 4);
    let client = lab.connect();
    assert!(
        lab.ask(client, "INFO server")
            .contains("redis_version:7.2.4\r\n")
    );
    assert!(
        lab.ask(client, "HELLO")
            .starts_with("[server redis version 7.2.4 proto 2 id 1 ")
    );
    assert_eq!(lab.ask(client, "CLIENT SETINFO LIB-NAME redis-py"), "OK");
    assert_eq!(lab.ask(client, "CLIENT SETINFO lib-ver 5.2.1"), "OK");
    assert_eq!(
        lab.ask(client, "CLIENT SETINFO FOO x"),
        "ERR Unrecognized option 'FOO'"
    );
    assert_eq!(
        lab.ask(client, "CLIENT SETINFO lib-ver \"a b\""),
        "ERR lib-ver cannot contain spaces, newlines or special characters."
    );
    let line = lab.ask(client, "CLIENT INFO");
    assert!(
        line.ends_with(" resp=2 lib-name=redis-py lib-ver=5.2.1\n"),
        "{line}"
    );
    assert_eq!(lab.ask(client, "CLIENT NO-TOUCH ON"), "OK");
    assert_eq!(lab.ask(client, "WAITAOF 0 0 0"), "[0 0]");
    assert_eq!(
        lab.ask(client, "WAITAOF 1 0 0"),
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
    );
}

#[test]
fn a_7_0_knows_nothing_of_7_2() {
    let mut lab = Laboratory::of_version(7, 0, 15);
    let client = lab.connect();
    assert_eq!(
        lab.ask(client, "CLIENT SETINFO LIB-NAME x"),
        "ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."
    );
    assert!(
        lab.ask(client, "WAITAOF 0 0 0")
            .starts_with("ERR unknown command 'WAITAOF'")
    );
    assert!(!lab.ask(client, "CLIENT INFO").contains("lib-name"));
    assert_eq!(lab.ask(client, "COMMAND INFO waitaof"), "[(nil)]");
    assert_eq!(lab.ask(client, "COMMAND DOCS client|setinfo"), "[]");
}

#[test]
fn a_6_0_knows_nothing_of_6_2_and_7_0() {
    let mut lab = Laboratory::of_version(6, 0, 9);
    let client = lab.connect();
    for command in [
        "GETDEL a",
        "GETEX a",
        "COPY a b",
        "RESET",
        "LCS a b",
        "EXPIRETIME a",
    ] {
        let name = command.split(' ').next().unwrap();
        let reply = lab.ask(client, command);
        assert!(
            reply.starts_with(&format!("ERR unknown command '{name}'")),
            "{reply}"
        );
    }
}

#[test]
fn the_number_of_commands_grows_with_the_version() {
    let count = |mut lab: Laboratory| {
        let client = lab.connect();
        lab.ask(client, "COMMAND COUNT").parse::<usize>().unwrap()
    };
    let counts = [(3, 0, 0), (6, 0, 0), (6, 2, 0), (7, 0, 0), (7, 2, 4)]
        .map(|(major, minor, patch)| count(Laboratory::of_version(major, minor, patch)));
    assert!(counts.is_sorted_by(|a, b| a < b), "{counts:?}");
}

#[test]
fn the_list_of_commands_is_as_long_as_their_number() {
    let mut lab = Laboratory::of_version(7, 2, 4);
    let client = lab.connect();
    let count: usize = lab.ask(client, "COMMAND COUNT").parse().unwrap();
    assert_eq!(lab.ask(client, "COMMAND LIST").split(' ').count(), count);
}
