import { Session } from "node:inspector";

/** Functions compiled before this are not counted, so a test imports this file before the library. */
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });

/**
 * Measures work by counting, not by time. It counts how often statements of the library and the test ran (V8's block
 * counts), and how many elements linear built-in methods of arrays, maps and sets visited. A cost that grows with the size
 * of a queue shows up in one of the two counts, regardless of the load of the machine.
 */
export async function workDone(work: () => unknown): Promise<number> {
  statementsRun();
  const counting = countElements();
  try {
    await work();
    return counting.elements() + statementsRun();
  } finally {
    counting.stop();
  }
}

/** Work per element for 20 × `few` elements, divided by that for `few` elements: 1 if linear, 20 if quadratic. */
export async function growthOf(few: number, work: (size: number) => unknown): Promise<number> {
  const each = async (size: number) => (await workDone(() => work(size))) / size;
  // Work that happens only once, such as creating effects that are cached, happens here.
  await each(10);
  const base = await each(few);
  return (await each(20 * few)) / base;
}

interface Coverage {
  result: { url: string; functions: { ranges: { count: number }[] }[] }[];
}

/** The number of statements run since the last call. */
function statementsRun(): number {
  let total = 0;
  session.post("Profiler.takePreciseCoverage", (_, coverage: unknown) => {
    for (const { url, functions } of (coverage as Coverage).result) {
      if (!/packages\/core\/(src|test)\//.test(url)) continue;
      for (const { ranges } of functions) for (const { count } of ranges) total += count;
    }
  });
  return total;
}

/** Members that take the same time for arrays of any length. */
const CONSTANT = new Set<PropertyKey>(["constructor", "length", "at", "push", "pop", "keys", "entries"]);

function countElements(): { elements(): number; stop(): void } {
  let touched = 0;
  const undo: (() => void)[] = [];
  const count = (prototype: object, name: PropertyKey, sizeOf: (self: never) => number) => {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
    const original = descriptor?.value as unknown;
    if (typeof original !== "function") return;
    function counting(this: unknown, ...args: unknown[]): unknown {
      touched += sizeOf(this as never);
      return Reflect.apply(original as () => unknown, this, args);
    }
    // oxlint-disable-next-line no-extend-native -- counting is the point, and `stop` undoes it
    Object.defineProperty(prototype, name, { ...descriptor, value: counting });
    undo.push(() => Object.defineProperty(prototype, name, descriptor as PropertyDescriptor));
  };
  for (const name of Reflect.ownKeys(Array.prototype)) {
    if (!CONSTANT.has(name)) count(Array.prototype, name, ({ length }: unknown[]) => length);
  }
  for (const { prototype } of [Map, Set] as const) {
    for (const name of ["forEach", "clear"]) count(prototype, name, ({ size }: Set<unknown>) => size);
  }
  return {
    elements: () => touched,
    stop: () => {
      for (const restore of undo) restore();
    },
  };
}
