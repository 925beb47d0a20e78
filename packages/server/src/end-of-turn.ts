/**
 * Defers tasks to the end of the current turn of the event loop, when all received data has been read, so that calls
 * that arrived together are decided together. All tasks of a turn share one immediate (S5: each task belongs to another
 * host).
 */
export function endOfTurn(): (task: () => void) => void {
  let waiting: (() => void)[] = [];
  const run = () => {
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  };
  return (task) => {
    if (waiting.push(task) === 1) setImmediate(run);
  };
}
