import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** One call of the original's caller, and the fields that it reads from the answer. */
interface Step {
  readonly send: { readonly path: string; readonly body: { readonly [field: string]: unknown } };
  readonly expect: { readonly status: number; readonly result: string; readonly keep?: readonly string[] };
}

/** The answer, in the shape of the expected one. */
export interface Replayed {
  readonly expected: Step["expect"];
  readonly got: Step["expect"];
}

const STEPS = readFileSync(new URL("original-caller.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Step);

/** Sends the caller's requests as recorded. `$now`, `$sha256(…)` and fields kept from earlier answers are filled in. */
export async function replay(url: string): Promise<Replayed[]> {
  const kept = new Map<string, string>();
  const replayed: Replayed[] = [];
  for (const { send, expect: expected } of STEPS) {
    const body = Object.fromEntries(Object.entries(send.body).map(([field, value]) => [field, filledIn(value, kept)]));
    const response = await fetch(`${url}${send.path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as { [field: string]: string };
    const keep = expected.keep?.filter((field) => typeof answer[field] === "string" && answer[field] !== "");
    for (const field of keep ?? []) kept.set(field, answer[field] as string);
    const got = { status: response.status, result: answer["result"] ?? "", ...(keep === undefined ? {} : { keep }) };
    replayed.push({ expected, got });
  }
  return replayed;
}

export const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function filledIn(value: unknown, kept: ReadonlyMap<string, string>): unknown {
  if (typeof value !== "string" || !value.startsWith("$")) return value;
  if (value === "$now") return Date.now();
  const hashed = /^\$sha256\((.*)\)$/.exec(value)?.[1];
  return hashed === undefined ? kept.get(value.slice(1)) : sha256(hashed);
}
