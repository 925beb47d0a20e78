// Ten cooperative tasks over three permits: simulated in virtual time first, then run for real, unchanged.
import {
  createSemaphore,
  delay,
  gather,
  type Program,
  run,
  simulate,
  spawn,
  type Task,
  withSemaphore,
} from "slotkeeper/effects";

function* worker(id: number): Program<string> {
  yield* delay(100);
  return `result-${id}`;
}

function* main(): Program<string[]> {
  const permits = yield* createSemaphore(3);
  const tasks: Task<string>[] = [];
  for (let id = 0; id < 10; id++) tasks.push(yield* spawn(withSemaphore(permits, worker(id))));
  return yield* gather(...tasks);
}

console.log("simulated:", simulate(main).now, "ms"); // 400 ms of virtual time, at once
console.log("for real:", (await run(main)).length, "results");
