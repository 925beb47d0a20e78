// At most two downloads at a time, each with a deadline for its turn.
import { AcquireTimeoutError, Semaphore } from "slotkeeper";

const sem = new Semaphore(2, { acquireTimeoutMs: 1_000 });

async function download(name: string): Promise<string> {
  await new Promise((done) => setTimeout(done, 20)); // stands for the real thing
  return `${name}: done`;
}

try {
  const results = await sem.map(["a", "b", "c", "d"], (name) => download(name));
  console.log(results.join(", "));
} catch (error) {
  if (error instanceof AcquireTimeoutError) console.log(`gave up after ${error.waitedMs} ms`);
  else throw error;
}
