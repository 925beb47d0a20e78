// Compiled by every supported TypeScript against the packed packages, with the library's declarations checked too.
import { bucketOfIp, SlotClient } from "@slotkeeper/client";
import { type SlotNamespace, slotFetch, slotObject } from "@slotkeeper/cloudflare";
import { PostgresStore, parseDsn } from "@slotkeeper/postgres";
import { PROBLEMS } from "@slotkeeper/protocol";
import { ROUTES } from "@slotkeeper/protocol/schemas";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { Service } from "@slotkeeper/server";
import { CALLER_ROUTES } from "@slotkeeper/server/portable";
import { AcquireTimeoutError, isSlotkeeperError, KeyedSemaphore, Mutex, Semaphore, SlotPool } from "slotkeeper";
import { run, simulate } from "slotkeeper/effects";
import { Limiter } from "slotkeeper/limiter";
import { FakeClock } from "slotkeeper/testing";
import { SharedSemaphore } from "slotkeeper/threads";
import { TransferSlots } from "slotkeeper/transfers";

const db = new Semaphore(2, { name: "db" });
const row: string = await db.run(async () => "a row", { timeoutMs: 500 });
try {
  await db.acquire({ timeoutMs: 1 });
} catch (error) {
  if (isSlotkeeperError(error) && error.code === "ACQUIRE_TIMEOUT") console.log(error.waitedMs.toFixed(), row);
}

const keeper = new SlotClient({ url: "http://127.0.0.1:8080" });
const status: number = await keeper.run({ hostname: "api.example.com" }, async (slot) => (slot.signal.aborted ? 0 : 1));

console.log(status, PROBLEMS.NOT_FOUND.status satisfies 404, bucketOfIp("127.0.0.1"));
console.log(AcquireTimeoutError, FairQueue, FakeClock, KeyedSemaphore, Limiter, MemoryStore, Mutex);
console.log(run, SharedSemaphore, SlotPool, simulate, TransferSlots);
class Slots extends slotObject({ maxSlotPerHost: 4 }) {}
console.log(Slots, (slots: SlotNamespace): typeof fetch => slotFetch(slots));
const database: string | undefined = parseDsn("postgres://127.0.0.1/slots").database;
console.log(database, PostgresStore, ROUTES, Service, CALLER_ROUTES);
