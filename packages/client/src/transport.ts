/**
 * One call to the service.
 *
 * CALL1  A call ends within its timeout, including its body.
 * CALL2  It ends in one of four ways: with the reply, the abort reason of the caller, a `RefusedError` (repeating it is
 *     pointless), or a `CallFailure` (repeating it may help).
 */
import type { Problem } from "@slotkeeper/protocol";
import { errorClass, RefusedError } from "./errors.ts";
import type { ResolvedOptions } from "./options.ts";
import { quietly } from "./timing.ts";

interface Answer<T> {
  readonly reply: T;
  readonly retryAfterMs: number | undefined;
}

/**
 * A call that may succeed if it is repeated. With `retryAfterMs`, the service answered and asks for a later retry.
 * Otherwise the service counts as unreachable.
 */
export const CallFailure = errorClass<{ reason: string; retryAfterMs?: number | undefined }, "">(
  "Error",
  "",
  (it) => it.reason,
);
export type CallFailure = InstanceType<typeof CallFailure>;

export type Call = <T>(
  name: "acquire" | "release" | "renew" | "cancel",
  body: object,
  signal?: AbortSignal,
  /** Default: `perRequestTimeoutMs` of the client. */
  timeoutMs?: number,
) => Promise<Answer<T>>;

/** The calls of one span. `fetch` is called as a plain function, because browsers and Workers refuse it as a method. */
export function transport(options: ResolvedOptions, traceparent: string | undefined): Call {
  const { url, token, header, fetch, perRequestTimeoutMs } = options;
  return async (name, body, signal, timeoutMs = perRequestTimeoutMs) => {
    const controller = new AbortController();
    let response: Response;
    let text: string;
    const stop = () =>
      controller.abort(
        signal?.aborted ? signal.reason : new CallFailure({ reason: `no answer within ${timeoutMs} ms` }),
      );
    const timer = setTimeout(stop, timeoutMs);
    signal?.addEventListener("abort", stop);
    try {
      response = await fetch(`${url}/api/v0/fairqueue/${name}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(token && { [header]: token }),
          ...(traceparent && { traceparent }),
        },
        body: JSON.stringify(body),
        signal: controller.signal,
        // A release may outlive the page that sends it.
        keepalive: name !== "acquire",
      });
      text = await response.text();
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : unreached(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
    return read(response, text, url);
  };
}

function read<T>({ ok, status, headers }: Response, text: string, url: string): Answer<T> {
  const reply = (quietly(() => JSON.parse(text)) ?? {}) as Partial<Problem> & { result?: string };
  const retryAfterMs = Number(headers.get("retry-after")) * 1000 || undefined;
  if (ok && reply.result) return { reply: reply as T, retryAfterMs };
  if (ok || status >= 500 || status === 408 || status === 429) {
    throw new CallFailure({ reason: `an answer with status ${status}`, retryAfterMs });
  }
  const { code, title, detail, errors } = reply;
  const reason = errors?.map(({ message }) => message).join("; ") ?? detail ?? title;
  throw new RefusedError({ url, status, problem: code, reason });
}

/** Node has the reason in the `cause`; `fetch failed` alone does not help. */
function unreached(error: unknown): CallFailure {
  const { message, cause } = error as { message: string; cause?: { code?: string } };
  return new CallFailure({ reason: cause?.code ? `${message} (${cause.code})` : message }, error);
}
