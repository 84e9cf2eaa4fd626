"""TLS through the Python client, which wraps the C client; arguments: port, trusted authority, another
authority, and, for a server that wants one, certificate and key of the client."""

import importlib.metadata
import sys

import aerospike
from aerospike import exception as errors

PORT, CA, OTHER_CA = int(sys.argv[1]), sys.argv[2], sys.argv[3]
IDENTITY = sys.argv[4:6]


def connect(ca, name="localhost", identity=IDENTITY):
    tls = {"enable": True, "cafile": ca}
    if identity:
        tls |= {"certfile": identity[0], "keyfile": identity[1]}
    config = {"hosts": [("127.0.0.1", PORT, name)], "tls": tls}
    return aerospike.client(config).connect()


def refused(*arguments, **named):
    try:
        connect(*arguments, **named)
    except errors.AerospikeError as error:
        return str(error)
    raise AssertionError("refusal expected")


client = connect(CA)
for number in range(200):
    client.put(("test", "demo", number), {"n": number, "b": bytearray(b"x" * 5000)})
_, meta, bins = client.get(("test", "demo", 7))
assert bins == {"n": 7, "b": bytearray(b"x" * 5000)}, bins
assert meta["gen"] == 1
records = client.batch_read([("test", "demo", number) for number in range(200)]).batch_records
assert [record.record[2]["n"] for record in records] == list(range(200))
(_, (error, nodes)), = client.info_all("peers-tls-std").items()
assert error is None and nodes.strip().endswith("0,3000,[]"), nodes
client.close()
refused(OTHER_CA)
refused(CA, "example.org")
if IDENTITY:
    refused(CA, identity=[])
version = importlib.metadata.version("aerospike")
print(f"  aerospike {version}{' with a client certificate' if IDENTITY else ''}")
