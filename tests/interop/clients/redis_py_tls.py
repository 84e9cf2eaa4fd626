"""TLS through redis-py. Arguments: port, trusted authority, another authority, and, for a server that
wants one, certificate and key of the client."""

import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PORT, CA, OTHER_CA = int(sys.argv[1]), sys.argv[2], sys.argv[3]
IDENTITY = sys.argv[4:6]


def connect(ca, host="localhost", identity=IDENTITY):
    options = {"ssl": True, "ssl_ca_certs": ca, "ssl_cert_reqs": "required"}
    if identity:
        options |= {"ssl_certfile": identity[0], "ssl_keyfile": identity[1]}
    options |= {"ssl_check_hostname": True, "retry": Retry(NoBackoff(), 0)}
    return redis.Redis(host, PORT, **options)


def refused(words, *arguments, **named):
    try:
        connect(*arguments, **named).ping()
    except redis.ConnectionError as error:
        assert any(word in str(error) for word in words), error
        return
    raise AssertionError(f"refusal expected: {words}")


for host in ("localhost", "127.0.0.1"):
    r = connect(CA, host)
    big = b"x" * 3_000_000
    assert r.set("big", big) is True
    assert r.get("big") == big
    with r.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"k{number}", number)
        assert pipe.execute() == [True] * 1000
    assert r.get("k999") == b"999"
refused(["certificate verify failed"], OTHER_CA)
if IDENTITY:
    # With TLS 1.3 the client learns of it when it reads, perhaps as a reset.
    words = ["alert", "reset", "closed by server", "Broken pipe"]
    refused(words, CA, identity=[])
print(f"  redis-py {redis.__version__}{' with a client certificate' if IDENTITY else ''}")
