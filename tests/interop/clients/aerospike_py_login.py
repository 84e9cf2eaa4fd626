"""Logins through the Python client; arguments: the port, a user and the password."""

import importlib.metadata
import sys

import aerospike
from aerospike import exception as errors

PORT, USER, PASSWORD = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def client(**login):
    return aerospike.client({"hosts": [("127.0.0.1", PORT)], **login}).connect()


def refused(code, **login):
    try:
        client(**login).close()
    except errors.AerospikeError as error:
        assert str(code) in f"{error.code} {error.msg}", f"expected {code} in {error!r}"
        return
    raise AssertionError(f"{code} expected")


within = client(user=USER, password=PASSWORD)
key = ("test", "demo", "login")
within.put(key, {"n": 1})
assert within.get(key)[2] == {"n": 1}
# Users may read and write, and nothing else.
try:
    within.admin_create_user("other", "password", ["read-write"])
except errors.RoleViolation as error:
    assert error.code == 81, error
else:
    raise AssertionError("a role violation expected")
within.close()
refused(65, user=USER, password="wrong")
refused(60, user="nobody", password=PASSWORD)
refused(80)
print(f"  aerospike (Python) {importlib.metadata.version('aerospike')}: logins")
