import { type Effect, EffectNode, type Program, type Runnable } from "./effect.ts";

// Every generator function has its own prototype object, so looking up `next` on the generators of many functions
// misses every inline cache. This object provides the methods for all of them.
const generatorPrototype = Object.getPrototypeOf(function* () {}.prototype) as Program<unknown>;
// oxlint-disable-next-line typescript/unbound-method -- called with the generator as `this`, below
const { next, throw: throwInto } = generatorPrototype;

/** Resumes a program with a value. The program must come from `toProgram`. */
export function resumeWith(program: Program<unknown>, value: unknown): IteratorResult<unknown, unknown> {
  return next.call(program, value);
}

/** Resumes a program with an error. The program must come from `toProgram`. */
export function resumeThrowing(program: Program<unknown>, error: unknown): IteratorResult<unknown, unknown> {
  return throwInto.call(program, error);
}

/** Returns the generator of anything that can be run. `where` names the argument in the error. */
export function toProgram<T>(source: Runnable<T>, where: string): Program<T> {
  const program: unknown = typeof source === "function" ? source() : source;
  if (isGenerator<T>(program)) return firstUse(program, where);
  if (program instanceof EffectNode || isProgram<T>(program)) return delegateTo(program as Effect<T>);
  throw new TypeError(
    `Expected \`${where}\` to be a generator, a function that returns one, or an effect, got ${describe(program)}`,
  );
}

/** Marks a generator that a run uses. It is a property and not a `WeakSet`, because there can be many tasks (E1). */
const TAKEN = Symbol("slotkeeper.taken");

/** Refuses a generator that was used before: it would have nothing left to do, and end at once with `undefined`. */
function firstUse<T>(program: Program<T> & { [TAKEN]?: true }, where: string): Program<T> {
  if (program[TAKEN] === true) {
    throw new TypeError(
      `Expected \`${where}\` to be a generator that has not run, got one that has: call its function again, or pass the function`,
    );
  }
  program[TAKEN] = true;
  return program;
}

/** For effects, and for generators that are not native (down-levelled, or from another realm). */
function* delegateTo<T>(source: Effect<T>): Program<T> {
  return yield* source;
}

/** Never constructed. `instanceof` uses its prototype, and engines compile that inline. */
function NativeGenerator(): void {}
NativeGenerator.prototype = generatorPrototype;

function isGenerator<T>(value: unknown): value is Program<T> {
  return value instanceof (NativeGenerator as unknown as new () => Program<T>);
}

export function isProgram<T>(value: unknown): value is Program<T> {
  if (typeof value !== "object" || value === null) return false;
  const it = value as { next?: unknown; throw?: unknown; [Symbol.iterator]?: unknown };
  return [it.next, it.throw, it[Symbol.iterator]].every((method) => typeof method === "function");
}

/** A value as it appears in an error message. */
export function describe(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === "function") return `the function ${value.name === "" ? "(anonymous)" : value.name}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (isProgram(value)) return "a generator (a program is entered by `yield*`, or started by `spawn`)";
  if (typeof value !== "object" || value === null) return String(value);
  if (typeof (value as { then?: unknown }).then === "function") return "a promise (`fromPromise` waits for one)";
  const constructor: unknown = (value as { constructor?: unknown }).constructor;
  return typeof constructor === "function" ? `an object of class ${constructor.name}` : "an object";
}
