import { readFileSync } from "node:fs";
import { isSlotkeeperError } from "slotkeeper";
import * as effects from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

const page = readFileSync(new URL("../../../../docs/reference/errors.md", import.meta.url), "utf8")
  .split("\n## ")
  .find((section) => section.startsWith("Errors of `slotkeeper/effects`")) as string;
const documented = [...page.matchAll(/^\| `([A-Z_]+)` *\| `(\w+)` *\| (yes|no) *\| .* \| (.*) \|$/gm)].map(
  ([, code, name, retryable, fields]) => ({
    code: code as string,
    name: name as string,
    retryable: retryable === "yes",
    fields: [...(fields as string).matchAll(/`(\w+)`/g)].map(([, field]) => field as string),
  }),
);

const ref = { id: 1, name: "a" };
const samples = [
  new effects.DeadlockError("m", { semaphores: [], parked: [], cycle: undefined }),
  new effects.OverReleaseError(1, 2),
  new effects.PromiseSettledError(1, "completed"),
  new effects.StepLimitError(5, ref),
  new effects.TaskCancelledError(ref),
];

describe("docs/reference/errors.md, errors of effects", () => {
  it("lists the codes that the table has, no more and no fewer", () => {
    const table = Object.entries(effects.EFFECT_ERROR_CODES).map(([code, row]) => [code, row.class, row.retryable]);
    expect(documented.map(({ code, name, retryable }) => [code, name, retryable])).toEqual(table);
  });

  it("lists each exported error class of this entry", () => {
    const classes = Object.entries(effects)
      .filter(
        ([name, value]) => typeof value === "function" && name.endsWith("Error") && name !== "AcquireTimeoutError",
      )
      .map(([name]) => name);
    expect(documented.map(({ name }) => name).sort()).toEqual(classes.sort());
  });

  it.each(samples.map((sample) => [sample.name, sample] as const))("has a true message for %s", (name, sample) => {
    const row = documented.find((entry) => entry.name === name);
    expect(row).toMatchObject({ code: sample.code, retryable: sample.retryable });
    for (const field of row?.fields ?? []) expect(Object.keys(sample)).toContain(field);
    expect(isSlotkeeperError(sample)).toBe(true);
    expect(sample).toBeInstanceOf(Error);
    expect(sample.constructor.name).toBe(name);
  });
});
