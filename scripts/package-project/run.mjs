// Plain JavaScript, ESM: every entry loads from the packed packages, and a semaphore works.
import assert from "node:assert/strict";
import { SlotClient } from "@slotkeeper/client";
import { Semaphore } from "slotkeeper";

for (const entry of process.argv.slice(2)) await import(entry);

const db = new Semaphore(1, { name: "db" });
assert.equal(await db.run(() => "a row"), "a row");
await db.acquire();
await assert.rejects(db.acquire({ timeoutMs: 1 }), { code: "ACQUIRE_TIMEOUT" });
assert.throws(() => new SlotClient({ url: "" }), TypeError);
