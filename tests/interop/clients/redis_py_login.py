"""Logins through redis-py, in both protocols; arguments: the port, a user and the password."""

import sys
import urllib.parse

import redis

PORT, USER, PASSWORD = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def check(found, wanted):
    assert found == wanted, f"expected {wanted!r}, found {found!r}"


def refused(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        # Some versions wrap the server's words, and none repeats the code word.
        assert text in f"{error} {error.__cause__} {error.args}", f"expected {text!r} in {error!r}"
        return
    raise AssertionError(f"{text!r} expected")


DENIED = redis.exceptions.NoPermissionError


for protocol in (2, 3):

    def client(**login):
        return redis.Redis(port=PORT, protocol=protocol, socket_timeout=5, **login)

    r = client(username=USER, password=PASSWORD)
    check(r.set("k", "v"), True)
    check(r.get("k"), b"v")
    # The client itself decodes this reply or not, as the protocol has it.
    assert r.acl_whoami() in (USER, USER.encode())
    check([one["user"] for one in r.client_list()][0], USER)
    password = urllib.parse.quote(PASSWORD, safe="")
    url = f"redis://{USER}:{password}@127.0.0.1:{PORT}?protocol={protocol}"
    check(redis.Redis.from_url(url).get("k"), b"v")
    refused(redis.AuthenticationError, "", client(username=USER, password="wrong").ping)
    refused(redis.AuthenticationError, "", client(username="nobody", password=PASSWORD).ping)
    refused(redis.AuthenticationError, "", client(password=PASSWORD).ping)
    refused(redis.AuthenticationError, "", client().ping)

    # A user who may do little.
    rules = ["on", ">little", "~mine:*", "+@read", "+@connection"]
    r.execute_command("ACL", "SETUSER", "little", *rules)
    little = client(username="little", password="little")
    check(little.get("mine:1"), None)
    refused(DENIED, "permissions to access", little.get, "k")
    refused(DENIED, "permissions to run the 'set' command", little.set, "mine:1", 1)
    check(r.acl_deluser("little"), 1)
    refused(redis.AuthenticationError, "", client(username="little", password="little").ping)
print(f"  redis-py {redis.__version__}: logins in RESP2 and RESP3")
