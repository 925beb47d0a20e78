import { afterAll, beforeAll, describe, test } from "vitest";
import { cancellationCases } from "./cancellation-cases.ts";
import { localCases } from "./local-cases.ts";
import { orderCases } from "./order-cases.ts";
import { runCases } from "./run-cases.ts";
import { slotCases } from "./slot-cases.ts";
import type { ContractOptions, SemaphoreLike, SemaphoreSubject } from "./subject.ts";

/** What the cases use: semaphores with unique names, and access to their queues. */
export interface Bench {
  semaphore(slots: number): SemaphoreLike;
  /** Another semaphore of the same name. */
  again(semaphore: SemaphoreLike): SemaphoreLike;
  queued(semaphore: SemaphoreLike, waiters: number): Promise<void>;
}

/** The contract of `Semaphore`, for any implementation of its shape. */
export function describeSemaphore(name: string, { open, skip = {} }: ContractOptions): void {
  describe(`${name} keeps the contract of a semaphore`, () => {
    let subject: SemaphoreSubject;
    let made = 0;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.close());
    const bench: Bench = {
      semaphore: (slots) => subject.make(slots, `contract-${made++}`),
      again: (semaphore) => subject.make(semaphore.capacity, semaphore.name ?? ""),
      queued: (semaphore, waiters) => subject.queued(semaphore.name ?? "", waiters),
    };
    orderCases(bench);
    cancellationCases(bench);
    runCases(bench);
    slotCases(bench);
    for (const [part, cases] of Object.entries(localCases)) {
      const reason = skip[part as keyof typeof localCases];
      if (reason === undefined) cases(bench);
      else test.skip(`${part}: ${reason}`);
    }
  });
}
