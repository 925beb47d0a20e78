/**
 * One call to the service. Nothing that it answers is trusted.
 *
 * CALL1  A call ends within its timeout, including its body.
 * CALL2  It ends in one of four ways: with the reply, the abort reason of the caller, a `RefusedError` (repeating it is
 *     pointless), or a `CallFailure` (repeating it may help).
 * CALL3  A reply fits its schema. Any other answer that is not a refusal is a `CallFailure`.
 * CALL4  Redirects are not followed, so that the shared key and the tokens go to no other address. At most `MOST_BYTES` of
 *     an answer are read.
 */
import type { Problem } from "@slotkeeper/protocol";
import { isAnswer, isText } from "./answers.ts";
import { errorClass, RefusedError } from "./errors.ts";
import type { ResolvedOptions } from "./options.ts";
import { now, quietly, startTimer } from "./timing.ts";

const MOST_BYTES = 65_536;
/** The service never asks for a shorter pause. */
const LEAST_RETRY_MS = 1_000;

interface Answer<T> {
  readonly reply: T;
  readonly retryAfterMs: number | undefined;
  /** When the call was sent, by the monotonic clock. The service answered later, so leases count from here. */
  readonly sentAt: number;
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

export type CallName = "acquire" | "release" | "renew" | "cancel";

export type Call = <T>(
  name: CallName,
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
    const end = (reason: string) => controller.abort(signal?.aborted ? signal.reason : new CallFailure({ reason }));
    const stop = () => end(`no answer within ${Math.round(timeoutMs)} ms`);
    const timer = startTimer(stop, timeoutMs);
    signal?.addEventListener("abort", stop);
    const sentAt = now();
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
        // Workers do not have "error".
        redirect: "manual",
        // A release may outlive the page that sends it.
        keepalive: name !== "acquire",
      });
      text = await textOf(response, () => end("an answer of more than 64 kB"), controller.signal);
    } catch (error) {
      throw controller.signal.aborted ? controller.signal.reason : unreached(error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    }
    return { ...read<Answer<never>["reply"]>(name, response, text, options), sentAt };
  };
}

/** CALL4. `text()` of a response has no limit. */
async function textOf({ body }: Response, onTooLong: () => void, signal: AbortSignal): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  let text = "";
  let bytes = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk?.value) return text;
    bytes += chunk.value.length;
    if (bytes > MOST_BYTES) onTooLong();
    signal.throwIfAborted();
    text += decoder.decode(chunk.value, { stream: true });
  }
}

function read<T>(
  name: CallName,
  { ok, status, headers }: Response,
  text: string,
  { url, maxWaitMs }: ResolvedOptions,
): Omit<Answer<T>, "sentAt"> {
  const body: unknown = quietly(() => JSON.parse(text));
  const retryAfterMs = retryAfter(headers.get("retry-after"), maxWaitMs);
  if (ok && isAnswer(name, body)) return { reply: body as T, retryAfterMs };
  // Browsers show a redirect as status 0.
  if (status < 400 || status >= 500 || status === 408 || status === 429) {
    const what = ok || status >= 400 ? "unexpected answer" : "answer that redirects, which is not followed,";
    throw new CallFailure({ reason: `an ${what} with status ${status}`, retryAfterMs });
  }
  const { code, title, detail, errors } = Object(body) as Partial<Record<keyof Problem, unknown>>;
  const messages = Array.isArray(errors) ? errors.map((error) => Object(error).message) : [];
  const reason = sentence(messages.filter(isText).join("; ")) || sentence(detail) || sentence(title);
  throw new RefusedError({ url, status, problem: sentence(code), reason });
}

/** Text of the service for an error message: bounded, and without control characters. */
function sentence(text: unknown): string | undefined {
  return isText(text) ? (text as string).slice(0, 500).replace(/\p{Cc}/gu, " ") : undefined;
}

/** Seconds or a date; other text counts as absent. */
function retryAfter(header: string | null, mostMs: number): number | undefined {
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header ?? "") - Date.now() : seconds * 1000;
  return header ? Math.min(mostMs, Math.max(LEAST_RETRY_MS, ms)) || undefined : undefined;
}

/** Node has the reason in the `cause`; `fetch failed` alone does not help. */
function unreached(error: unknown): CallFailure {
  const { message, cause } = Object(error) as { message: string; cause?: { code?: string } };
  return new CallFailure({ reason: cause?.code ? `${message} (${cause.code})` : message }, error);
}
