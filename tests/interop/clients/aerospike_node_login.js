// Logins through the Node.js client; arguments: the port, a user and the password.
const assert = require("node:assert");
const Aerospike = require("aerospike");

const [port, user, password] = process.argv.slice(2);

async function main() {
  const connect = (login) => Aerospike.connect({ hosts: `127.0.0.1:${port}`, ...login });
  const client = await connect({ user, password });
  const key = new Aerospike.Key("test", "demo", "login");
  await client.put(key, { n: 1 });
  assert.deepEqual((await client.get(key)).bins, { n: 1 });
  await client.close();
  for (const login of [{ user, password: "wrong" }, { user: "nobody", password }, {}]) {
    await assert.rejects(connect(login));
  }
  console.log(`  aerospike (Node.js) ${require("aerospike/package.json").version}: logins`);
}

main()
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
