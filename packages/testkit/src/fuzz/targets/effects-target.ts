import { isSlotkeeperError } from "slotkeeper";
import {
  acquireSemaphore,
  cancel,
  createSemaphore,
  delay,
  gather,
  log,
  type Program,
  race,
  releaseSemaphore,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  tryAcquireSemaphore,
  tryCatch,
  wait,
  withSemaphore,
} from "slotkeeper/effects";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget, ownMemory } from "../fuzz-target.ts";

const BATCH = 200;
const MOST_STEPS = 5_000;

interface World {
  readonly random: Random;
  readonly semaphores: SemaphoreHandle[];
  readonly tasks: Task<unknown>[];
  /** Holders by the program's own count, for each semaphore. */
  readonly held: number[];
  readonly permits: number[];
}

/** A random program: a few effects, some of them in tasks of their own. */
function* anyProgram(world: World, depth: number): Program<unknown> {
  const { random } = world;
  for (let steps = random.int(1, 5); steps > 0; steps--) yield* anyStep(world, depth);
  return random.int(0, 9);
}

function* anyStep(world: World, depth: number): Program<unknown> {
  const { random, semaphores, tasks } = world;
  const at = random.int(0, semaphores.length - 1);
  const semaphore = semaphores[at] as SemaphoreHandle;
  switch (random.int(0, depth > 0 ? 10 : 5)) {
    case 0:
      return yield* delay(random.int(0, 50));
    case 1:
      return yield* log("x");
    case 2:
      return yield* tryCatch(hold(world, at, delay(random.int(0, 20))));
    case 3: {
      const got = yield* tryAcquireSemaphore(semaphore);
      if (got) yield* releaseSemaphore(semaphore);
      return got;
    }
    case 4:
      // Deadlocks and over-releases are part of the language: they are errors of the program that has them.
      return yield* tryCatch(acquireSemaphore(semaphore, { timeoutMs: random.int(0, 30) }));
    case 5:
      return yield* tryCatch(releaseSemaphore(semaphore));
    case 6: {
      const task = yield* spawn(anyProgram(world, depth - 1));
      tasks.push(task);
      return task;
    }
    case 7:
      return tasks.length === 0 ? undefined : yield* tryCatch(wait(random.pick(tasks)));
    case 8:
      return tasks.length === 0 ? undefined : yield* cancel(random.pick(tasks));
    case 9:
      return yield* tryCatch(gather([anyProgram(world, depth - 1), anyProgram(world, depth - 1)]));
    default:
      return yield* tryCatch(race([anyProgram(world, depth - 1), delay(random.int(1, 40))]));
  }
}

/** LIMIT: within the scope, no more programs than permits. Scopes are counted apart from bare acquires. */
function hold(world: World, at: number, inner: ReturnType<typeof delay>): Program<void> {
  const { semaphores, held, permits } = world;
  return withSemaphore(
    semaphores[at] as SemaphoreHandle,
    (function* () {
      held[at] = (held[at] ?? 0) + 1;
      if ((held[at] ?? 0) > (permits[at] ?? 0)) {
        throw new FuzzFailure(`${held[at]} holders of ${permits[at]} permits`, { at });
      }
      try {
        return yield* inner;
      } finally {
        held[at] = (held[at] ?? 0) - 1;
      }
    })(),
  ) as Program<void>;
}

function tryOne(random: Random): void {
  const seed = random.int(1, 1e9);
  const permits = Array.from({ length: random.int(1, 2) }, () => random.int(1, 3));
  const main = function* (): Program<unknown> {
    const semaphores: SemaphoreHandle[] = [];
    for (const count of permits) semaphores.push(yield* createSemaphore(count));
    return yield* anyProgram({ random, semaphores, tasks: [], held: permits.map(() => 0), permits }, 3);
  };
  try {
    simulate(main, { seed, maxSteps: MOST_STEPS, onUnhandled: () => {} });
  } catch (error) {
    if (error instanceof FuzzFailure) throw error;
    if (isSlotkeeperError(error) || /OVER_RELEASE|DEADLOCK/.test(String((error as { code?: string }).code))) return;
    throw new FuzzFailure(`Expected an error of our own, got ${String(error)}`, { seed, permits }, error);
  }
}

export const effectsTarget: FuzzTarget = {
  name: "effects",
  title: "random programs of cooperative tasks in the simulator: they end, with an error of our own at worst",
  batch: BATCH,
  share: 4,
  open: () =>
    Promise.resolve({
      tryBatch: (random) => {
        for (let at = 0; at < BATCH; at++) tryOne(random);
        return Promise.resolve();
      },
      memory: ownMemory,
      close: () => Promise.resolve(),
    }),
};
