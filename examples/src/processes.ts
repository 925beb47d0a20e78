// Six jobs, two at a time. One line decides whether that means this process or every process that runs this file.
import { SlotClient } from "@slotkeeper/client";
import { Semaphore } from "slotkeeper";

const url = process.env["SLOTKEEPER_URL"];

// In one process this line is: const slots = new Semaphore(2, { name: "jobs" });
const slots = url === undefined ? new Semaphore(2, { name: "jobs" }) : new SlotClient({ url }).semaphore("jobs", 2);

async function job(number: number): Promise<void> {
  console.log(`${Date.now()} start ${process.pid}/${number}`);
  await new Promise((done) => setTimeout(done, 50)); // stands for the real thing
  console.log(`${Date.now()} end ${process.pid}/${number}`);
}

await Promise.all([1, 2, 3, 4, 5, 6].map((number) => slots.run(() => job(number), { timeoutMs: 30_000 })));
