import { within } from "../platform/clock.ts";

/** How long a caller waits for an answer that only the store can give. The engine continues to try after that. */
const PATIENCE_MS = 2_000;

/** Rejects if the store does not answer in time. The call may still take effect, and callers may repeat it. */
export function withinPatience<T>(answer: Promise<T>): Promise<T> {
  return within(PATIENCE_MS, answer, () => {
    throw new Error(`The store did not answer within ${PATIENCE_MS} ms`);
  });
}
