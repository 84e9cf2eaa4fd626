// Logins through node-redis, in both protocols; arguments: the port, a user and the password.
const assert = require("node:assert");
const { createClient } = require("redis");

const [port, username, password] = process.argv.slice(2);

async function work(RESP) {
  function client(login) {
    const socket = { port: Number(port), host: "127.0.0.1", reconnectStrategy: false };
    const r = createClient({ RESP, socket, ...login });
    // What goes wrong is seen by whoever connects or asks.
    r.on("error", () => {});
    return r;
  }
  const r = await client({ username, password }).connect();
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  assert.equal(await r.aclWhoAmI(), username);
  await r.close();
  for (const login of [
    { username, password: "wrong" },
    { username: "nobody", password },
    { password },
  ]) {
    await assert.rejects(client(login).connect(), /WRONGPASS/);
  }
  const ask = async () => {
    const nobody = await client({}).connect();
    await nobody.get("k").finally(() => nobody.destroy());
  };
  await assert.rejects(ask(), /NOAUTH/);
}

async function main() {
  await work(2);
  await work(3);
  console.log(`  node-redis ${require("redis/package.json").version}: logins in RESP2 and RESP3`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
