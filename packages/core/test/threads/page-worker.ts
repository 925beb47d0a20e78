/** A worker of the page in `browser.spec.ts`: half of its acquisitions block, half await. */
import { SharedSemaphore, type SharedSemaphoreHandle } from "slotkeeper/threads";
import { type Board, INSIDE, TWO_INSIDE } from "./board.ts";

interface Task {
  readonly handle: SharedSemaphoreHandle;
  readonly board: Board;
  readonly rounds: number;
}

interface Scope {
  addEventListener(type: "message", listener: (event: { data: Task }) => void): void;
  postMessage(message: unknown): void;
}
const scope = globalThis as unknown as Scope;

scope.addEventListener("message", ({ data }) => void work(data));

function answer(value: unknown): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin to name
  scope.postMessage(value);
}

async function work({ handle, board, rounds }: Task): Promise<void> {
  const semaphore = SharedSemaphore.attach(handle);
  if (rounds === 0) {
    await semaphore.acquire();
    answer(semaphore.threadId);
    return;
  }
  for (let round = 0; round < rounds; round++) {
    const slot = round % 2 === 0 ? semaphore.acquireSync() : await semaphore.acquire();
    if (Atomics.add(board, INSIDE, 1) !== 0) Atomics.add(board, TWO_INSIDE, 1);
    Atomics.sub(board, INSIDE, 1);
    slot.release();
  }
  answer("done");
}
