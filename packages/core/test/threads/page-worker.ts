/** A worker of the page in `browser.spec.ts`: half of its acquisitions block, half await. */
import { SharedSemaphore, type SharedSemaphoreHandle } from "slotkeeper/threads";
import { type Board, INSIDE, TWO_INSIDE } from "./board.ts";

interface Scope {
  onmessage: ((event: { data: { handle: SharedSemaphoreHandle; board: Board; rounds: number } }) => void) | null;
  postMessage(message: unknown): void;
}
const scope = globalThis as unknown as Scope;

scope.onmessage = async ({ data: { handle, board, rounds } }) => {
  const semaphore = SharedSemaphore.attach(handle);
  if (rounds === 0) {
    await semaphore.acquire();
    scope.postMessage(semaphore.threadId);
    return;
  }
  for (let round = 0; round < rounds; round++) {
    const slot = round % 2 === 0 ? semaphore.acquireSync() : await semaphore.acquire();
    if (Atomics.add(board, INSIDE, 1) !== 0) Atomics.add(board, TWO_INSIDE, 1);
    Atomics.sub(board, INSIDE, 1);
    slot.release();
  }
  scope.postMessage("done");
};
