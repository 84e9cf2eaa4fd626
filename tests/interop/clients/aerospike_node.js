// Real work through the Node.js client, which wraps the C client; argument: the port.
const assert = require("node:assert");
const Aerospike = require("aerospike");

const port = Number(process.argv[2]);
const op = Aerospike.operations;

async function main() {
  const client = await Aerospike.connect({ hosts: `127.0.0.1:${port}` });
  const key = new Aerospike.Key("test", "demo", "k1");
  const bins = { i: 7, d: 1.5, s: "text", b: Buffer.from([0, 255]), l: [1, "x"], m: { a: 1 } };
  await client.put(key, bins);
  const record = await client.get(key);
  assert.deepEqual(record.bins, bins);
  assert.equal(record.gen, 1);
  assert.equal(await client.exists(key), true);
  assert.equal(await client.exists(new Aerospike.Key("test", "demo", "no")), false);
  const operated = await client.operate(key, [op.incr("i", 3), op.append("s", "!"), op.read("i")]);
  assert.equal(operated.bins.i, 10);
  const policy = new Aerospike.WritePolicy({ gen: Aerospike.policy.gen.EQ });
  await assert.rejects(client.put(key, { i: 1 }, { gen: 99 }, policy), (error) => error.code === 3);
  const keys = [];
  for (let i = 0; i < 20; i++) {
    keys.push(new Aerospike.Key("test", "demo", i));
    await client.put(keys[i], { n: i });
  }
  const rows = await client.batchRead(keys.map((k) => ({ key: k, readAllBins: true })));
  assert.deepEqual(rows.map((row) => row.record.bins.n), keys.map((_, i) => i));
  await client.remove(key);
  await assert.rejects(client.get(key), (error) => error.code === 2);
  await client.close();
  console.log(`  aerospike (Node.js) ${require("aerospike/package.json").version}`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
