// Six jobs, two at a time over all processes that run this file. One variable decides whether that means this machine or a fleet.
import { SlotClient } from "@slotkeeper/client";
import { localClient } from "@slotkeeper/client/node";

const url = process.env["SLOTKEEPER_URL"];
const keeper = url === undefined ? localClient() : new SlotClient({ url });
const slots = keeper.semaphore("jobs", 2);

async function job(number: number): Promise<void> {
  console.log(`${Date.now()} start ${process.pid}/${number}`);
  await new Promise((done) => setTimeout(done, 50)); // stands for the real thing
  console.log(`${Date.now()} end ${process.pid}/${number}`);
}

await Promise.all([1, 2, 3, 4, 5, 6].map((number) => slots.run(() => job(number), { timeoutMs: 30_000 })));
