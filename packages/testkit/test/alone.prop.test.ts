import { Book, type DecideContext, decide, type Input } from "@slotkeeper/queue/internals";
import { compareHistory, memoryHost, randomHistory } from "@slotkeeper/testkit/reference";
import { imageDifference, indexDifference } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";

/**
 * A session that arrives alone gets its slot without joining the pool (`isAlone` in `take-input.ts`). This is a second way
 * to grant, so it must equal the first one, `handOut`: the same decision without the shortcut gives the same book, outcome
 * and notes. The shortcut needs a single input. So a second input that changes nothing turns it off.
 */
const HISTORIES = 200;
const INERT: Input = { kind: "client", session: "unknown", awayAt: undefined };

/** Compares the decision with the shortcut and the one without it. Returns whether a slot was granted. */
function isGrantedTheSame(book: Book, arrival: Input, context: DecideContext): boolean {
  const [quick, slow] = [arrival, INERT].map(() => Book.of(book.host, book.tag, structuredClone(book.image())));
  const newSecret = () => "a secret";
  const decided = decide(quick as Book, [arrival], { ...context, newSecret });
  const expected = decide(slow as Book, [arrival, INERT], { ...context, newSecret });
  expect(decided).toEqual({ ...expected, outcomes: expected.outcomes.slice(0, -1) });
  expect(imageDifference((quick as Book).image(), (slow as Book).image())).toBeUndefined();
  expect(indexDifference(quick as Book, slow as Book)).toBeUndefined();
  return decided.notes.some(({ kind }) => kind === "granted");
}

test("a session that arrives alone is granted its slot as if it had joined the pool", {
  timeout: 600_000,
}, async () => {
  let granted = 0;
  const host = () =>
    memoryHost((book, inputs, context) => {
      for (const input of inputs)
        if (input.kind === "arrive" && book.limits !== undefined && isGrantedTheSame(book, input, context)) granted++;
      return decide(book, inputs, context);
    });
  for (let seed = 1; seed <= HISTORIES; seed++)
    expect(await compareHistory(randomHistory(seed), host()), `seed ${seed}`).toBeUndefined();
  expect(granted).toBeGreaterThan(HISTORIES);
});
