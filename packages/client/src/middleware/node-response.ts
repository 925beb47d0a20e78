/** The end of a response of `node:http`, by its shape: this package imports no `node:` module. */
import type { Outcome, TakeSlot } from "./tenant-slots.ts";
import { Refusal } from "./tenant-slots.ts";

interface NodeResponse {
  readonly closed: boolean;
  once(event: "close", listener: () => void): unknown;
}

/** Takes a slot and holds it until the response has ended or its caller has disconnected. */
export async function takeUntilClosed<Request>(
  take: TakeSlot<Request>,
  request: Request,
  response: NodeResponse,
): Promise<Outcome> {
  const gone = new AbortController();
  let release = () => {};
  response.once("close", () => {
    gone.abort();
    release();
  });
  if (response.closed) gone.abort();
  const outcome = await take(request, gone.signal);
  if (typeof outcome !== "object" || outcome instanceof Refusal) return outcome;
  release = () => void outcome.release();
  return outcome;
}
