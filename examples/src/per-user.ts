// Ten uploads in all, one per user: a user's backlog takes nothing from the others.
import { SlotPool } from "slotkeeper";

const uploads = new SlotPool({ max: 10, maxPerKey: 1 });

async function upload(user: string, file: string, signal?: AbortSignal): Promise<string> {
  return uploads.run(user, () => `${user} uploaded ${file}`, { signal, timeoutMs: 30_000 });
}

console.log(await Promise.all([upload("ann", "1.png"), upload("ann", "2.png"), upload("bob", "3.png")]));
console.log(uploads.stats().inUse, "in use"); // 0
