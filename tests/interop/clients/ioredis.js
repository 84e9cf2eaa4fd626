// Real work through ioredis, in both protocols; argument: the port.
const assert = require("node:assert");
const Redis = require("ioredis");

const port = Number(process.argv[2]);

async function work(protocol) {
  const options = { protocol, db: protocol, maxRetriesPerRequest: 1 };
  const r = new Redis(port, "127.0.0.1", options);
  await r.flushdb();
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  assert.equal(await r.get("missing"), null);
  assert.equal(await r.set("x", "1", "PX", 400), "OK");
  assert.ok((await r.pttl("x")) > 0);
  await new Promise((resolve) => setTimeout(resolve, 450));
  assert.equal(await r.exists("x"), 0);
  assert.equal(await r.incrby("n", 5), 5);
  assert.deepEqual(await r.mget("k", "n", "none"), ["v", "5", null]);
  assert.equal(await r.expire("k", 100), 1);
  assert.ok([99, 100].includes(await r.ttl("k")));

  const pipeline = r.pipeline();
  for (let i = 0; i < 300; i++) pipeline.set(`p${i}`, i).get(`p${i}`);
  const replies = await pipeline.exec();
  assert.equal(replies.length, 600);
  for (let i = 0; i < 300; i++) assert.deepEqual(replies[2 * i + 1], [null, String(i)]);

  assert.deepEqual(await r.multi().set("t", 1).incr("t").get("t").exec(), [
    [null, "OK"],
    [null, 2],
    [null, "2"],
  ]);
  await r.watch("t");
  const other = new Redis(port, "127.0.0.1", options);
  await other.set("t", 9);
  assert.equal(await r.multi().incr("t").exec(), null);

  await assert.rejects(r.call("NOSUCH", "a"), /unknown command 'NOSUCH'/);
  const seen = new Set();
  const stream = r.scanStream({ match: "p*", count: 11 });
  for await (const keys of stream) keys.forEach((key) => seen.add(key));
  assert.equal(seen.size, 300);
  const buffer = Buffer.from([0, 255, 13, 10]);
  await r.set("bin", buffer);
  assert.deepEqual(await r.getBuffer("bin"), buffer);
  await Promise.all([r.quit(), other.quit()]);
}

async function main() {
  await work(2);
  await work(3);
  console.log(`  ioredis ${require("ioredis/package.json").version}: RESP2 and RESP3`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
