// TLS through node-redis; arguments: port, trusted authority, another authority.
const assert = require("node:assert");
const fs = require("node:fs");
const { createClient } = require("redis");

const [port, ca, otherCa] = process.argv.slice(2);

function client(authority) {
  const socket = { tls: true, ca: fs.readFileSync(authority), reconnectStrategy: false };
  return createClient({ socket: { host: "localhost", port: Number(port), ...socket } });
}

async function main() {
  const r = client(ca);
  r.on("error", () => {});
  await r.connect();
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  const big = "x".repeat(3_000_000);
  await r.set("big", big);
  assert.equal(await r.get("big"), big);
  await r.quit();

  const stranger = client(otherCa);
  stranger.on("error", () => {});
  await assert.rejects(stranger.connect(), /certificate/);
  console.log("  node-redis");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
