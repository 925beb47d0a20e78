/**
 * Defers tasks to the end of the present turn of the event loop, when the sockets have brought all they had: what came
 * together is decided together. One immediate for all tasks of a turn, not one for each (S5: each is of another host).
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
