/** The end of a response of `node:http`, by its shape: this package imports no `node:` module. */
import { type Outcome, Refusal, type TakeSlot } from "./tenant-slots.ts";

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
  response.once("close", () => gone.abort());
  if (response.closed) gone.abort();
  const outcome = await take(request, gone.signal);
  if (typeof outcome !== "object" || outcome instanceof Refusal) return outcome;
  const release = () => void outcome.release();
  if (gone.signal.aborted) release();
  else gone.signal.addEventListener("abort", release);
  return outcome;
}
