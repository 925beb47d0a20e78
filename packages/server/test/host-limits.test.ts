import { readFileSync } from "node:fs";
import { BREAKER_LIMITS, HOST_LIMITS, LIVE_LIMITS, type Setting } from "@slotkeeper/protocol";
import { ConfigSchema, LiveLimitsSchema, StateSchema } from "@slotkeeper/protocol/schemas";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";

/**
 * A new limit of a host needs two changes: its row in `protocol/src/settings/host-limits.ts`, and the rule that reads
 * it. These tests check every row against all other parts.
 */

interface Row {
  readonly path: readonly string[];
  readonly limit: Setting & { readonly field: string };
}

const ROWS: Row[] = [
  ...Object.entries(HOST_LIMITS).map(([key, limit]) => ({ path: [key], limit })),
  ...Object.entries(BREAKER_LIMITS).map(([key, limit]) => ({ path: ["breaker", key], limit })),
];

type Json = { readonly [key: string]: Json };

const root = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const read = (from: unknown, path: readonly string[]) => path.reduce((at, key) => at[key] as Json, from as Json);
const config = (path: readonly string[], value: unknown) => path.reduceRight((inner, key) => ({ [key]: inner }), value);
const fieldPath = ({ path, limit }: Row) => [...path.slice(0, -1), limit.field];

/** An allowed value that differs from the default, and one that is not allowed. */
function examplesOf(limit: Setting): { readonly other: unknown; readonly wrong: unknown } {
  switch (limit.type) {
    case "flag":
      return { other: !limit.default, wrong: "yes" };
    case "choice":
      return { other: limit.choices.at(-1), wrong: "any" };
    case "codes":
      return { other: [418], wrong: [99] };
    case "integer":
      return { other: 7, wrong: 1.5 };
    case "number": {
      const { min, above } = limit;
      return { other: 7, wrong: min === undefined && above === undefined ? "much" : (above ?? (min as number) - 1) };
    }
  }
}

const { fairQueue: FAIR_QUEUE } = (ConfigSchema as unknown as Json)["properties"] as { fairQueue: Json };
const unitMs = (limit: Setting) => ("unit" in limit && limit.unit === "seconds" ? 1000 : 1);
const inEngine = (limit: Setting, value: unknown) => (typeof value === "number" ? value * unitMs(limit) : value);

describe.each(ROWS.map((row) => ({ ...row, name: row.path.join(".") })))("the limit `$name`", (row) => {
  const { path, limit, name } = row;
  const { other, wrong } = examplesOf(limit);
  const inside = path.flatMap((key) => ["properties", key]);
  const own = read(FAIR_QUEUE, inside);

  it("is in the schema of `fairQueue` and of its `hosts`, with its default and bounds", () => {
    const [hosts] = Object.values(read(FAIR_QUEUE, ["properties", "hosts", "patternProperties"]));
    expect(read(hosts, inside)).toEqual(own);
    expect(own["description"]).toMatch(/^.{10}/);
    expect(own["default"]).toEqual("default" in limit ? limit.default : undefined);
    const { min, above } = limit as { min?: number; above?: number };
    expect([own["minimum"], own["exclusiveMinimum"]]).toEqual([min, above]);
  });

  it("is validated, with its path in the problem", () => {
    const refused = () => resolveOptions(config(path, wrong) as never);
    expect(refused).toThrow(`Expected \`fairQueue.${name}\` to be `);
    expect(() => resolveOptions({ hosts: { a: config(path, wrong) as never } })).toThrow(`.${name}\` to be `);
  });

  it("reaches the policy of a host, from the defaults, the configuration and an override", () => {
    const policyOf = (given: unknown) => resolveHost(resolveOptions(given as never), "a.example").policy;
    if ("default" in limit && !("isOffAt0" in limit && limit.default <= 0)) {
      expect(read(policyOf({}), fieldPath(row))).toEqual(inEngine(limit, limit.default));
    }
    expect(read(policyOf(config(path, other)), fieldPath(row))).toEqual(inEngine(limit, other));
    expect(read(policyOf({ hosts: { "a.example": config(path, other) } }), fieldPath(row))).toEqual(
      inEngine(limit, other),
    );
  });

  it("is in the documentation", () => {
    expect(root("docs/reference/config.md")).toMatch(
      new RegExp(`^\\| \`${name}\` .*${escaped(String(own["description"]))}`, "m"),
    );
  });
});

describe("limits that operators set live", () => {
  it("are those of the table, in the call and in the state", () => {
    const keys = LIVE_LIMITS.map(({ key }) => key);
    expect(keys).toEqual(["maxSlotPerHost", "maxSlotPerIp"]);
    expect(Object.keys(LiveLimitsSchema.properties)).toEqual(keys);
    const state = (StateSchema as unknown as Json)["properties"] as { hosts: Json };
    expect(Object.keys(read(state.hosts, ["items", "properties", "limits", "properties"]))).toEqual(keys);
  });
});

describe("SQL for direct callers", () => {
  it("reads no limit of a host that is not in the table", () => {
    // Budgets and keys have tables of their own. A pause is a setting of an operator, but no limit.
    const fields = new Set([...ROWS.map((row) => fieldPath(row).join(",")), "budgets", "keys"]);
    const sql = root("packages/postgres/sql/0005_direct_callers.sql");
    const paths = [...sql.matchAll(/'\{policy,([\w,]+)\}'/g), ...sql.matchAll(/v_policy ->> '(\w+)'/g)];
    const live = [...sql.matchAll(/'\{live,(\w+)\}'/g)].map(([, field]) => field);
    expect(paths.length).toBeGreaterThan(3);
    for (const [text, path] of paths) expect([text, fields.has(path as string)]).toEqual([text, true]);
    expect(new Set(live)).toEqual(new Set([...LIVE_LIMITS.map(({ field }) => field), "isPaused"]));
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
