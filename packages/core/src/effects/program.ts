import { type Effect, EffectNode, type Program, type Runnable } from "./effect.ts";

// Every generator function has a prototype object of its own, so looking `next` up on the generators of many functions
// misses every inline cache. The methods all come from this one object.
const generatorPrototype = Object.getPrototypeOf(function* () {}.prototype) as Program<unknown>;
// oxlint-disable-next-line typescript/unbound-method -- called with the generator as `this`, below
const { next, throw: throwInto } = generatorPrototype;

/** Resumes a program with a value. It must be one of `toProgram`. */
export function resumeWith(program: Program<unknown>, value: unknown): IteratorResult<unknown, unknown> {
  return next.call(program, value);
}

/** Resumes a program with an error. It must be one of `toProgram`. */
export function resumeThrowing(program: Program<unknown>, error: unknown): IteratorResult<unknown, unknown> {
  return throwInto.call(program, error);
}

/** The generator of whatever can be run. `where` names the argument in the error. */
export function toProgram<T>(source: Runnable<T>, where: string): Program<T> {
  const program: unknown = typeof source === "function" ? source() : source;
  if (isGenerator<T>(program)) return firstUse(program, where);
  if (program instanceof EffectNode || isProgram<T>(program)) return delegateTo(program as Effect<T>);
  throw new TypeError(
    `Expected \`${where}\` to be a generator, a function that returns one, or an effect, got ${describe(program)}`,
  );
}

/** On a generator that a run has taken. A property and not a `WeakSet`: tasks are many (E1). */
const TAKEN = Symbol("slotkeeper.taken");

/** A generator runs once: a second run would find nothing left to do, and end at once with `undefined`. */
function firstUse<T>(program: Program<T> & { [TAKEN]?: true }, where: string): Program<T> {
  if (program[TAKEN] === true) {
    throw new TypeError(
      `Expected \`${where}\` to be a generator that has not run, got one that has: call its function again, or pass the function`,
    );
  }
  program[TAKEN] = true;
  return program;
}

/** For effects, and for generators that are not the language's own (down-levelled, or of another realm). */
function* delegateTo<T>(source: Effect<T>): Program<T> {
  return yield* source;
}

/** Never constructed: `instanceof` asks for its prototype, and engines compile that in place. */
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
