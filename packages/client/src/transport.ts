/**
 * One call to the service.
 *
 * T1  A call ends within its timeout, its body included, even if `fetch` ignores the signal.
 * T2  Every end is one of four: the reply, the caller's own abort reason, a `RefusedError` (repeating it is pointless),
 *     or a `CallFailure` (repeating it may help).
 */
import type { Problem } from "@slotkeeper/protocol";
import { RefusedError } from "./errors.ts";

export interface TransportOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly header: string;
  readonly fetch: typeof fetch;
}

export interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly traceparent?: string | undefined;
  /** The call may outlive the page that makes it. */
  readonly keepalive?: boolean;
}

export interface Answer<T> {
  readonly reply: T;
  readonly retryAfterMs: number | undefined;
}

/** A call that may succeed when repeated. */
export class CallFailure extends Error {
  /** The service answers, and asks to come back later. Anything else counts as unreachable. */
  readonly isBusy: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, cause?: unknown, retryAfterMs?: number) {
    super(message, { cause });
    this.isBusy = retryAfterMs !== undefined;
    this.retryAfterMs = retryAfterMs;
  }
}

export type CallName = "acquire" | "release" | "renew" | "cancel";

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  async call<T>(name: CallName, body: object, options: CallOptions): Promise<Answer<T>> {
    const { timeoutMs, signal } = options;
    const controller = new AbortController();
    const stop = new Promise<never>((_, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true });
    });
    const onAbort = () => controller.abort(signal?.reason);
    const timer = setTimeout(() => controller.abort(new CallFailure(`no answer within ${timeoutMs} ms`)), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      signal?.throwIfAborted();
      return await Promise.race([this.#exchange<T>(name, body, options, controller.signal), stop]);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof RefusedError || error instanceof CallFailure) throw error;
      const reason: unknown = controller.signal.reason;
      throw reason instanceof CallFailure ? reason : new CallFailure(describe(error), error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async #exchange<T>(
    name: CallName,
    body: object,
    { traceparent, keepalive = false }: CallOptions,
    signal: AbortSignal,
  ): Promise<Answer<T>> {
    // Not `this.#options.fetch(…)`: browsers and Workers refuse `fetch` as somebody's method.
    const { url, token, header, fetch } = this.#options;
    const response = await fetch(`${url}/api/v0/fairqueue/${name}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { [header]: token }),
        ...(traceparent !== undefined && { traceparent }),
      },
      body: JSON.stringify(body),
      signal,
      keepalive,
    });
    return read<T>(response, await response.text(), url);
  }
}

function read<T>({ ok, status, headers }: Response, text: string, url: string): Answer<T> {
  const reply = parsed(text);
  const retryAfter = headers.get("retry-after");
  const retryAfterMs = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;
  if (ok) {
    if (typeof reply?.["result"] === "string") return { reply: reply as T, retryAfterMs };
    throw new CallFailure(`the answer with status ${status} is not JSON with a \`result\``);
  }
  if (status >= 500 || status === 408 || status === 429) {
    throw new CallFailure(`it answered with status ${status}`, undefined, retryAfterMs);
  }
  const { code, title, detail, errors } = (reply ?? {}) as Partial<Problem>;
  const fields = errors?.map(({ message }) => message).join("; ");
  const why = fields ?? detail ?? title ?? "it gave no reason";
  throw new RefusedError(`The service at ${url} refused the call with status ${status}: ${why}.`, {
    status,
    problem: code,
  });
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Node hides the reason in the cause: `fetch failed` alone helps nobody. */
function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  const detail = cause?.code ?? cause?.message;
  return `${message ?? String(error)}${detail === undefined ? "" : ` (${detail})`}`;
}
