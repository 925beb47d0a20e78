// The validator against the schema library, on all schemas of requests and of the configuration.
import * as Schemas from "@slotkeeper/protocol/schemas";
import { validator } from "@slotkeeper/server/internals";
import * as fc from "fast-check";
import type { TSchema } from "typebox";
import { Compile } from "typebox/schema";
import { expect, test } from "vitest";

const { BreakerCallSchema, CancelSchema, ConfigSchema, FirstCallSchema, LiveLimitsSchema } = Schemas;
const { PauseCallSchema, PollSchema, ReleaseSchema, RenewSchema, ReportSchema } = Schemas;
const CALLS = { FirstCallSchema, PollSchema, ReleaseSchema, RenewSchema, CancelSchema, ReportSchema };
const SCHEMAS = { ...CALLS, BreakerCallSchema, PauseCallSchema, LiveLimitsSchema, ConfigSchema };

interface Node {
  readonly properties?: { readonly [key: string]: Node };
  readonly patternProperties?: { readonly [pattern: string]: Node };
}

const odd = fc.oneof(
  fc.constantFrom<unknown>(
    0,
    1,
    -1,
    0.5,
    100,
    599,
    600,
    86_400_000,
    1e9,
    2 ** 53,
    "",
    " ",
    "open",
    "closed",
    "\u0000",
    "é",
    "😀".repeat(200),
    true,
    null,
  ),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 3 }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Values that resemble the schema: its keys with odd values, some unknown keys. */
function valueOf({ properties, patternProperties }: Node, depth = 0): fc.Arbitrary<unknown> {
  const [every] = Object.values(patternProperties ?? {});
  if (depth > 4 || (properties === undefined && every === undefined)) return odd;
  const known = Object.fromEntries(
    Object.entries(properties ?? {}).map(([key, node]) => [
      key,
      fc.oneof({ weight: 4, arbitrary: valueOf(node, depth + 1) }, odd),
    ]),
  );
  const named = fc.record(known, { requiredKeys: [] });
  const others = fc.dictionary(fc.string({ maxLength: 5 }), every === undefined ? odd : valueOf(every, depth + 1), {
    maxKeys: 1,
  });
  return fc.tuple(named, others).map(([one, other]) => ({ ...other, ...one }));
}

test.each(Object.entries(SCHEMAS))(
  "%s: the same values are valid, and every invalid one has a problem",
  (_, schema) => {
    const own = validator(schema as TSchema);
    const library = Compile(schema as TSchema);
    fc.assert(
      fc.property(fc.oneof(valueOf(schema as Node), odd), (value) => {
        const checked = own.check(value);
        expect("value" in checked).toBe(library.Check(value));
        if ("problems" in checked) expect(checked.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 2_000 },
    );
  },
);

test("a keyword that the validator does not know is an error, not ignored", () => {
  expect(() => validator({ type: "string", format: "uri" })).toThrow("does not know these keywords: format");
});
