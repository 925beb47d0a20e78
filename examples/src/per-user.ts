// Ten uploads at a time, one per user: the backlog of one user does not delay the others.
import { SlotPool } from "slotkeeper";

const uploads = new SlotPool({ max: 10, maxPerKey: 1 });

async function upload(user: string, file: string, signal?: AbortSignal): Promise<string> {
  return uploads.run(user, () => `${user} uploaded ${file}`, { signal, timeoutMs: 30_000 });
}

console.log(await Promise.all([upload("ann", "1.png"), upload("ann", "2.png"), upload("bob", "3.png")]));
console.log(uploads.stats().inUse, "in use"); // 0
