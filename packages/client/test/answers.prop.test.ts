// The client accepts exactly the answers to `acquire` that the schema of the service allows, without a schema library.
import { UnavailableError } from "@slotkeeper/client";
import { AcquireAnswerSchema } from "@slotkeeper/protocol/schemas";
import * as fc from "fast-check";
import { Value } from "typebox/value";
import { afterEach, expect, test, vi } from "vitest";
import { granted, outcomeOf, pending, ScriptedService } from "./scripted-service.ts";

afterEach(() => void vi.useRealTimers());

const valid: object[] = [
  pending,
  { ...pending, estimatedWaitMs: 5 },
  granted,
  { result: "throttled", throttleCode: 503, throttleRetryAfter: 5, reason: "errors" },
  { result: "timeout", reason: "deadline" },
  { result: "overloaded", retryAfter: 5 },
  { result: "ok" },
];
const fields = [...new Set(valid.flatMap((answer) => Object.keys(answer)))];
const values = fc.oneof(
  fc.constantFrom(0, 1, -1, 30, 31, 1.5, 1e300, "", "x", "x".repeat(22), null, undefined, [], {}, "granted"),
  fc.jsonValue(),
);
/** A valid answer with some fields changed or removed, or any JSON. */
const changed = fc
  .tuple(fc.constantFrom(...valid), fc.dictionary(fc.constantFrom(...fields), values, { maxKeys: 3 }))
  .map(([answer, changes]): unknown => JSON.parse(JSON.stringify({ ...answer, ...changes })));
const answers = fc.oneof({ weight: 6, arbitrary: changed }, { weight: 1, arbitrary: fc.jsonValue() });

/** A later version of the service may add values of `blockedBy`, so any text is accepted there. */
function withKnownReason(answer: unknown): unknown {
  const { blockedBy } = Object(answer) as { blockedBy?: unknown };
  return typeof blockedBy === "string" ? { ...(answer as object), blockedBy: "store" } : answer;
}

test("an answer is accepted if and only if its schema allows it", async () => {
  const service = new ScriptedService();
  const keeper = service.client({ maxWaitMs: 1, maxAttempts: 1 });
  const seen = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(answers, async (answer) => {
      service.acquire = () => Response.json(answer);
      const outcome = await outcomeOf(keeper.run({ hostname: "example.com" }, () => {}));
      const isAccepted = !(outcome instanceof UnavailableError);
      seen[isAccepted ? "accepted" : "refused"]++;
      expect(isAccepted).toBe(Value.Check(AcquireAnswerSchema, withKnownReason(answer)));
      await vi.advanceTimersByTimeAsync(10_000);
    }),
    { numRuns: 500 },
  );
  expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(50);
});
