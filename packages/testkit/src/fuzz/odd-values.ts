import type { Random } from "../random/random.ts";

/** Values that programs handle badly: limits of numbers, odd text, wrong types, deep and hostile objects. */

const NUMBERS = [0, -0, 1, -1, 0.5, 1e-9, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 1e308, -1e308, 1e21];
const NOT_JSON = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, undefined, 10n, Symbol("x"), () => 1];
const TEXTS = [
  "",
  " ",
  "0",
  "null",
  "true",
  "-1",
  "1e999",
  "NaN",
  "__proto__",
  "constructor",
  "toString",
  "\u0000",
  "\u001b[31m",
  "\r\nX-Injected: 1",
  "\ud800",
  "\u202e",
  "😀".repeat(40),
  "a".repeat(300),
  "../../x",
  "%00",
  "%",
  "'; --",
  "${x}",
  "sem:x",
  "*.example.com",
  "2026-01-01T00:00:00Z",
];

/** A text of a few random characters, mostly printable. */
export function oddText(random: Random): string {
  if (random.chance(0.5)) return random.pick(TEXTS);
  const length = random.int(0, random.chance(0.05) ? 2_000 : 12);
  let text = "";
  for (let at = 0; at < length; at++) {
    text += String.fromCodePoint(random.chance(0.9) ? random.int(32, 126) : random.int(1, 0xd7ff));
  }
  return text;
}

export function oddNumber(random: Random): number {
  return random.chance(0.6) ? random.pick(NUMBERS) : (random.next() - 0.5) * 10 ** random.int(0, 18);
}

/** Anything that JSON can carry. */
export function oddJson(random: Random, depth = 3): unknown {
  const kind = random.int(0, depth > 0 ? 6 : 4);
  if (kind <= 1) return oddText(random);
  if (kind === 2) return oddNumber(random);
  if (kind === 3) return random.chance(0.5);
  if (kind === 4) return null;
  const values = Array.from({ length: random.int(0, 4) }, () => oddJson(random, depth - 1));
  return kind === 5 ? values : Object.fromEntries(values.map((value) => [oddText(random), value]));
}

/** Anything at all, also what JSON cannot carry. */
export function oddValue(random: Random): unknown {
  return random.chance(0.2) ? random.pick(NOT_JSON) : oddJson(random);
}

/** The object with some of its values replaced, left out or added: mostly right, so that it gets past the first check. */
export function spoiled(random: Random, object: object, odd: (random: Random) => unknown = oddValue): object {
  const entries = Object.entries(object).flatMap(([key, value]): [string, unknown][] => {
    if (random.chance(0.1)) return [];
    if (random.chance(0.25)) return [[key, odd(random)]];
    const isNested = typeof value === "object" && value !== null && !Array.isArray(value);
    return [[key, isNested ? spoiled(random, value, odd) : value]];
  });
  if (random.chance(0.15)) entries.push([oddText(random), odd(random)]);
  return Object.fromEntries(entries);
}

/** The bytes with some of them changed, cut, repeated or inserted. */
export function damaged(random: Random, bytes: Uint8Array): Uint8Array {
  let result = Buffer.from(bytes);
  for (let times = random.int(1, 4); times > 0 && result.length > 0; times--) {
    const at = random.int(0, result.length - 1);
    const to = Math.min(result.length, at + random.int(1, 40));
    const way = random.int(0, 4);
    if (way === 0) result[at] = random.int(0, 255);
    else if (way === 1) result = result.subarray(0, at);
    else if (way === 2) result = Buffer.concat([result.subarray(0, at), result.subarray(to)]);
    else if (way === 3) result = Buffer.concat([result.subarray(0, to), result.subarray(at)]);
    else result = Buffer.concat([result.subarray(0, at), Buffer.from(oddText(random)), result.subarray(at)]);
  }
  return result;
}
