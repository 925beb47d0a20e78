/** The page in `browser.spec.ts`. Each function is called by the test and answers it. */
import { SharedSemaphore } from "slotkeeper/threads";
import { newBoard, TWO_INSIDE } from "./board.ts";

interface PageWorker {
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  postMessage(message: unknown): void;
  terminate(): void;
}
declare const Worker: new (url: string, options: { type: "module" }) => PageWorker;

function start(message: unknown): { worker: PageWorker; answer: Promise<unknown> } {
  const worker = new Worker("/page-worker.mjs", { type: "module" });
  const answer = new Promise((resolve) => {
    worker.addEventListener("message", ({ data }) => resolve(data));
  });
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin to name
  worker.postMessage(message);
  return { worker, answer };
}

/** Four workers and the page's main thread want one slot. */
async function contend(rounds: number): Promise<{ twoInside: number | undefined; inUse: number; mine: number }> {
  const semaphore = SharedSemaphore.create(1);
  const board = newBoard();
  const workers = Array.from({ length: 4 }, () => start({ handle: semaphore.handle, board, rounds }));
  let mine = 0;
  const over = Promise.all(workers.map(({ answer }) => answer)).then(() => "over");
  do {
    (await semaphore.acquire()).release();
    mine++;
  } while ((await Promise.race([over, new Promise((resolve) => setTimeout(resolve))])) !== "over");
  for (const { worker } of workers) worker.terminate();
  return { twoInside: board[TWO_INSIDE], inUse: semaphore.inUse, mine };
}

/** The main thread of a page cannot block; it gets an error, and holds no place in the queue afterwards. */
function blockTheMainThread(): { name: string; waiting: number } {
  const semaphore = SharedSemaphore.create(1);
  semaphore.acquireSync();
  try {
    semaphore.acquireSync();
    return { name: "blocked", waiting: -1 };
  } catch (error) {
    return { name: (error as Error).name, waiting: semaphore.waiting };
  }
}

async function terminateHolder(): Promise<{ recovered: number; hasSlot: boolean }> {
  const semaphore = SharedSemaphore.create(1);
  const { worker, answer } = start({ handle: semaphore.handle, board: newBoard(), rounds: 0 });
  const threadId = (await answer) as number;
  const asked = semaphore.acquire();
  worker.terminate();
  const recovered = semaphore.reap(threadId);
  return { recovered, hasSlot: (await asked).release() };
}

Object.assign(globalThis, { contend, blockTheMainThread, terminateHolder });
