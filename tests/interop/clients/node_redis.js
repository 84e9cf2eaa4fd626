// Real work through node-redis, in both protocols; arguments: the port and the version that INFO names.
const assert = require("node:assert");
const { createClient, WatchError } = require("redis");

const port = Number(process.argv[2]);
const version = process.argv[3];

async function work(RESP) {
  const r = createClient({ RESP, socket: { port, host: "127.0.0.1", reconnectStrategy: false } });
  await r.connect();
  await r.flushDb();
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  assert.equal(await r.get("missing"), null);
  assert.equal(await r.set("k", "w", { NX: true }), null);
  assert.equal(await r.incrBy("n", 7), 7);
  assert.deepEqual(await r.mGet(["k", "n", "none"]), ["v", "7", null]);
  assert.equal(Number(await r.expire("k", 100)), 1);
  assert.ok([99, 100].includes(await r.ttl("k")));
  const many = await Promise.all(Array.from({ length: 300 }, (_, i) => r.set(`p${i}`, String(i))));
  assert.ok(many.every((reply) => reply === "OK"));
  assert.deepEqual(await r.multi().set("t", "1").incr("t").get("t").exec(), ["OK", 2, "2"]);
  await r.watch("t");
  const other = await r.duplicate().connect();
  await other.set("t", "9");
  await assert.rejects(r.multi().incr("t").exec(), WatchError);
  other.destroy();
  assert.equal(await r.set("brief", "1", { PX: 400 }), "OK");
  assert.ok((await r.pTTL("brief")) > 0);
  await new Promise((resolve) => setTimeout(resolve, 450));
  assert.equal(await r.exists("brief"), 0);
  const seen = new Set();
  for await (const keys of r.scanIterator({ MATCH: "p*", COUNT: 11 })) {
    keys.forEach((key) => seen.add(key));
  }
  assert.equal(seen.size, 300);
  await assert.rejects(r.sendCommand(["NOSUCH", "a"]), /unknown command 'NOSUCH'/);
  assert.equal(await r.dbSize(), 303);
  assert.ok((await r.info("server")).includes(`redis_version:${version}`));
  await (r.close ? r.close() : r.quit());
}

async function main() {
  await work(2);
  await work(3);
  console.log(`  node-redis ${require("redis/package.json").version}: RESP2 and RESP3`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
