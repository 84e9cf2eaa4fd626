"""Real work through redis-py, in both protocols; arguments: the port and the version that INFO names."""

import sys
import time

import redis

PORT, VERSION = int(sys.argv[1]), sys.argv[2]


def check(found, wanted):
    assert found == wanted, f"expected {wanted!r}, found {found!r}"


def strings(r):
    check(r.set("s", "one"), True)
    check(r.get("s"), b"one")
    check(r.get("missing"), None)
    check(r.set("s", "two", nx=True), None)
    check(r.set("s", "two", xx=True, get=True), b"one")
    check(r.append("s", "!"), 4)
    check(r.strlen("s"), 4)
    check(r.getrange("s", 1, -1), b"wo!")
    check(r.setrange("s", 1, "OW"), 4)
    check(r.get("s"), b"tOW!")
    check(r.incrby("n", 41), 41)
    check(r.incr("n"), 42)
    check(r.decr("n", 2), 40)
    check(r.incrbyfloat("f", "0.1"), 0.1)
    check(r.mset({"a": 1, "b": 2, "c": b"\x00\xff"}), True)
    check(r.mget("a", "b", "c", "d"), [b"1", b"2", b"\x00\xff", None])
    check(r.msetnx({"a": 1, "z": 2}), False)
    check(r.getdel("a"), b"1")
    check(r.exists("a", "b", "c"), 2)
    check(r.lcs("b", "b") if hasattr(r, "lcs") else b"2", b"2")
    big = b"x" * 3_000_000
    r.set("big", big)
    check(r.get("big"), big)


def keys_and_expiry(r):
    r.set("e", 1, px=400)
    assert 0 < r.pttl("e") <= 400
    time.sleep(0.45)
    check(r.get("e"), None)
    r.set("e", 1)
    check(r.ttl("e"), -1)
    check(r.ttl("missing"), -2)
    check(r.expire("e", 100), True)
    check(r.expire("e", 50, gt=True), False)
    check(r.persist("e"), True)
    check(r.rename("e", "e2"), True)
    check(r.type("e2"), b"string")
    check(r.copy("e2", "e3"), True)
    check(r.unlink("e2", "e3", "nothing"), 2)
    r.mset({f"scan:{i}": i for i in range(500)})
    found = list(r.scan_iter("scan:*", count=7))
    check(sorted(found), sorted(f"scan:{i}".encode() for i in range(500)))
    check(len(r.keys("scan:?")), 10)


def pipelines_and_transactions(r):
    with r.pipeline(transaction=False) as pipe:
        for i in range(200):
            pipe.set(f"p{i}", i)
            pipe.get(f"p{i}")
        replies = pipe.execute()
    check(replies, [x for i in range(200) for x in (True, str(i).encode())])
    with r.pipeline() as pipe:
        pipe.set("t", 1).incr("t").get("t")
        check(pipe.execute(), [True, 2, b"2"])
    with r.pipeline() as pipe:
        pipe.watch("t")
        r.set("t", 100)
        pipe.multi()
        pipe.incr("t")
        try:
            pipe.execute()
            raise AssertionError("a transaction over a changed key went through")
        except redis.WatchError:
            pass

    def doubled(pipe):
        before = int(pipe.get("t"))
        pipe.multi()
        pipe.set("t", 2 * before)
        pipe.get("t")

    check(r.transaction(doubled, "t"), [True, b"200"])


def errors_and_server(r):
    try:
        r.execute_command("NOSUCH", "x")
        raise AssertionError("an unknown command was accepted")
    except redis.ResponseError as error:
        assert str(error).startswith("unknown command 'NOSUCH'"), error
    r.set("s", "text")
    try:
        r.incr("s")
        raise AssertionError("text was incremented")
    except redis.ResponseError as error:
        check(str(error), "value is not an integer or out of range")
    check(r.ping(), True)
    check(r.echo("hi"), b"hi")
    check(r.info()["redis_version"], VERSION)
    check(r.config_get("maxmemory"), {"maxmemory": "0"})
    check(r.config_set("maxmemory-policy", "allkeys-lru"), True)
    check(r.config_get("maxmemory-policy"), {"maxmemory-policy": "allkeys-lru"})
    check(r.client_setname("me"), True)
    # The client itself decodes this one reply or not, as the protocol has it.
    check(r.client_getname() in ("me", b"me"), True)
    assert any(client["name"] == "me" for client in r.client_list())
    assert r.client_id() > 0
    assert len(r.time()) == 2
    check(r.command_count() > 50, True)


for protocol in (2, 3):
    for db in (0, 5):
        client = redis.Redis(port=PORT, db=db, protocol=protocol, socket_timeout=10)
        client.flushdb()
        strings(client)
        keys_and_expiry(client)
        pipelines_and_transactions(client)
        errors_and_server(client)
        check(client.dbsize() > 0, True)
        client.flushdb()
        check(client.dbsize(), 0)
        client.close()
print(f"  redis-py {redis.__version__}: RESP2 and RESP3, two databases")
