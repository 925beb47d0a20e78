// Four workers share two slots. One of them dies while it holds a slot; the slot comes back.
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { SharedSemaphore, watch } from "slotkeeper/threads";

if (isMainThread) {
  const semaphore = SharedSemaphore.create(2);
  const file = fileURLToPath(import.meta.url);
  const workers = ["a", "b", "c", "clumsy"].map((name) => {
    const worker = new Worker(file, { workerData: { name, handle: semaphore.handle } });
    watch(worker, semaphore); // releases its slots when it ends
    return worker;
  });
  await Promise.all(workers.map((worker) => once(worker, "exit")));
  console.log("in use at the end:", semaphore.inUse);
} else {
  const semaphore = SharedSemaphore.attach(workerData.handle);
  await semaphore.run(async () => {
    if (workerData.name === "clumsy") process.exit(1);
    await new Promise((resolve) => setTimeout(resolve, 20)); // the work
  });
}
