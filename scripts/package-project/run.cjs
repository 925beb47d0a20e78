// CommonJS: Node 20.19, 22.12 and later load ES modules with require.
const assert = require("node:assert/strict");

for (const entry of process.argv.slice(2)) require(entry);

const { Mutex } = require("slotkeeper");
const mutex = new Mutex();
void mutex.run(() => "done").then((value) => assert.equal(value, "done"));
