"""Real work through the Python client, which wraps the C client; argument: the port."""

import importlib.metadata
import sys
import time

import aerospike
from aerospike import exception as errors
from aerospike_helpers.operations import operations as op

PORT = int(sys.argv[1])


def check(found, wanted):
    assert found == wanted, f"expected {wanted!r}, found {found!r}"


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} expected")


client = aerospike.client({"hosts": [("127.0.0.1", PORT)]}).connect()
key = ("test", "demo", "k1")

# Every scalar type, lists and maps.
bins = {"i": -5, "f": 1.5, "s": "text", "b": bytearray(b"\x00\xff"), "t": True}
bins |= {"l": [1, "two", [3.0]], "m": {"a": 1, "b": [2]}}
client.put(key, bins)
_, meta, found = client.get(key)
check(found, bins)
check(meta["gen"], 1)
check(client.select(key, ["i", "none"])[2], {"i": -5})
check(client.exists(key)[1]["gen"], 1)
check(client.exists(("test", "demo", "missing"))[1], None)
refused(errors.RecordNotFound, client.get, ("test", "demo", "missing"))

# Generations and policies.
eq = {"gen": aerospike.POLICY_GEN_EQ}
client.put(key, {"i": 6}, {"gen": 1}, eq)
refused(errors.RecordGenerationError, client.put, key, {"i": 7}, {"gen": 1}, eq)
create = {"exists": aerospike.POLICY_EXISTS_CREATE}
refused(errors.RecordExistsError, client.put, key, {"i": 7}, policy=create)
update = {"exists": aerospike.POLICY_EXISTS_UPDATE}
refused(errors.RecordNotFound, client.put, ("test", "demo", "no"), {"i": 7}, policy=update)
refused(errors.NamespaceNotFound, client.put, ("nope", "demo", "k"), {"i": 7})

# Operate.
_, meta, found = client.operate(
    key, [op.increment("i", 10), op.append("s", "!"), op.prepend("s", "<"), op.read("i"), op.read("s")]
)
check(found, {"i": 16, "s": "<text!"})
check(meta["gen"], 3)
client.increment(key, "i", 4)
client.append(key, "s", ">")
check(client.select(key, ["i", "s"])[2], {"i": 20, "s": "<text!>"})
client.remove_bin(key, ["f"])
check("f" in client.get(key)[2], False)

# Time to live, touch, removal.
brief = ("test", "demo", "brief")
client.put(brief, {"x": 1}, {"ttl": 1})
check(client.get(brief)[1]["ttl"] <= 1, True)
client.touch(brief, 100)
assert 98 <= client.exists(brief)[1]["ttl"] <= 100
client.put(brief, {"x": 1}, {"ttl": 1})
time.sleep(2.1)  # a record lives through its last second: up to two after the write
refused(errors.RecordNotFound, client.get, brief)
client.remove(key)
refused(errors.RecordNotFound, client.remove, key)

# Stored user keys, integer and blob keys.
for user_key in (42, "text", bytearray(b"blob")):
    where = ("test", "demo", user_key)
    client.put(where, {"v": 1}, policy={"key": aerospike.POLICY_KEY_SEND})
    check(client.get(where)[2], {"v": 1})

# Batches.
keys = [("test", "batch", i) for i in range(50)]
for i, where in enumerate(keys):
    client.put(where, {"n": i})
records = client.batch_read([*keys, ("test", "batch", "missing")]).batch_records
check([r.record[2]["n"] for r in records[:50]], list(range(50)))
check(records[50].result, 2)

check(client.info_all("build") != {}, True)
client.truncate("test", "batch", 0)
client.close()
print(f"  aerospike (Python) {importlib.metadata.version('aerospike')}")
