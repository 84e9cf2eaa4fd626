// Logins through ioredis, in both protocols; arguments: the port, a user and the password.
const assert = require("node:assert");
const Redis = require("ioredis");

const [port, username, password] = process.argv.slice(2);

async function work(protocol) {
  function client(login) {
    const options = { protocol, maxRetriesPerRequest: 0, retryStrategy: null };
    const r = new Redis({ port: Number(port), host: "127.0.0.1", ...options, ...login });
    // What goes wrong is seen by whoever asks for something.
    r.on("error", () => {});
    return r;
  }
  const r = client({ username, password });
  assert.equal(await r.set("k", "v"), "OK");
  assert.equal(await r.get("k"), "v");
  assert.equal(await r.call("ACL", "WHOAMI"), username);
  await r.quit();
  for (const login of [
    { username, password: "wrong" },
    { username: "nobody", password },
    { password },
    {},
  ]) {
    const refused = client(login);
    await assert.rejects(refused.get("k"), /WRONGPASS|NOAUTH/);
    refused.disconnect();
  }
}

async function main() {
  await work(2);
  await work(3);
  console.log(`  ioredis ${require("ioredis/package.json").version}: logins in RESP2 and RESP3`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
