// TLS through ioredis; arguments: port, trusted authority, another authority.
const assert = require("node:assert");
const fs = require("node:fs");
const Redis = require("ioredis");

const [port, ca, otherCa] = process.argv.slice(2);

function connect(authority) {
  const tls = { ca: fs.readFileSync(authority) };
  const never = { retryStrategy: null, maxRetriesPerRequest: 0 };
  return new Redis({ host: "localhost", port: Number(port), tls, ...never });
}

async function main() {
  const r = connect(ca);
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  const big = "x".repeat(3_000_000);
  await r.set("big", big);
  assert.equal(await r.get("big"), big);
  const pipeline = r.pipeline();
  for (let i = 0; i < 300; i++) pipeline.set(`p${i}`, i).get(`p${i}`);
  const replies = await pipeline.exec();
  for (let i = 0; i < 300; i++) assert.deepEqual(replies[2 * i + 1], [null, String(i)]);
  await r.quit();

  const stranger = connect(otherCa);
  const reasons = [];
  stranger.on("error", (error) => reasons.push(error.message));
  await assert.rejects(stranger.ping());
  assert.ok(reasons.some((reason) => /certificate/.test(reason)), reasons.join());
  console.log("  ioredis");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
