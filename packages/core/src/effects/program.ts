import { type Effect, EffectNode, type Program, type Runnable } from "./effect.ts";

/** The generator of whatever can be run. `where` names the argument in the error. */
export function toProgram<T>(source: Runnable<T>, where: string): Program<T> {
  if (source instanceof EffectNode) return perform(source as Effect<T>);
  const program: unknown = typeof source === "function" ? source() : source;
  if (isProgram<T>(program)) return program;
  throw new TypeError(
    `Expected \`${where}\` to be a generator, a function that returns one, or an effect, got ${describe(program)}`,
  );
}

function* perform<T>(effect: Effect<T>): Program<T> {
  return yield* effect;
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
