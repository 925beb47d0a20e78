// The client accepts exactly the answers to `acquire` that the schema of the service allows, without a schema library.
import { UnavailableError } from "@slotkeeper/client";
import { AcquireAnswerSchema } from "@slotkeeper/protocol/schemas";
import * as fc from "fast-check";
import { Value } from "typebox/value";
import { afterEach, expect, test, vi } from "vitest";
import { changedAnswers } from "./changed-answers.ts";
import { outcomeOf, ScriptedService } from "./scripted-service.ts";

afterEach(() => void vi.useRealTimers());

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
    fc.asyncProperty(changedAnswers, async (answer) => {
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
