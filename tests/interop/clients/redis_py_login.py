"""Logins through redis-py, in both protocols; arguments: the port, a user and the password."""

import sys
import urllib.parse

import redis

PORT, USER, PASSWORD = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def check(found, wanted):
    assert found == wanted, f"expected {wanted!r}, found {found!r}"


def refused(text, call, *arguments):
    try:
        call(*arguments)
    except redis.RedisError as error:
        assert text in str(error), f"expected {text!r} in {error!r}"
        return
    raise AssertionError(f"{text!r} expected")


for protocol in (2, 3):

    def client(**login):
        return redis.Redis(port=PORT, protocol=protocol, socket_timeout=5, **login)

    r = client(username=USER, password=PASSWORD)
    check(r.set("k", "v"), True)
    check(r.get("k"), b"v")
    check(r.acl_whoami(), USER.encode())
    check([one["user"] for one in r.client_list()][0], USER)
    password = urllib.parse.quote(PASSWORD, safe="")
    url = f"redis://{USER}:{password}@127.0.0.1:{PORT}?protocol={protocol}"
    check(redis.Redis.from_url(url).get("k"), b"v")
    refused("WRONGPASS", client(username=USER, password="wrong").ping)
    refused("WRONGPASS", client(username="nobody", password=PASSWORD).ping)
    refused("WRONGPASS", client(password=PASSWORD).ping)
    refused("uthentication", client().ping)

    # A user who may do little.
    rules = ["on", ">little", "~mine:*", "+@read", "+@connection"]
    r.execute_command("ACL", "SETUSER", "little", *rules)
    little = client(username="little", password="little")
    check(little.get("mine:1"), None)
    refused("No permissions to access a key", little.get, "k")
    refused("User little has no permissions to run the 'set' command", little.set, "mine:1", 1)
    check(r.acl_deluser("little"), 1)
    refused("WRONGPASS", client(username="little", password="little").ping)
print(f"  redis-py {redis.__version__}: logins in RESP2 and RESP3")
