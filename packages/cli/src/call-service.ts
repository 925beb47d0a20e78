import { mustBeCarried } from "./carried.ts";
import { DEFAULT_URL } from "./service-flags.ts";

export class ServiceCallError extends Error {
  readonly code: "UNAVAILABLE" | "REFUSED";
  /** The HTTP status of the answer; `undefined` if there was none. */
  readonly status: number | undefined;

  constructor(code: "UNAVAILABLE" | "REFUSED", message: string, options: { cause?: unknown; status?: number } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = options.status;
  }
}

/** Makes one call outside a session and returns the JSON of the answer. Throws a `ServiceCallError` with a sentence. */
export async function callService(url = DEFAULT_URL, path: string, init: RequestInit): Promise<unknown> {
  mustBeCarried({ url });
  let response: Response;
  try {
    response = await fetch(url.replace(/\/+$/, "") + path, { ...init, signal: AbortSignal.timeout(8_000) });
  } catch (error) {
    const { message, cause } = error as { message: string; cause?: { code?: string; message?: string } };
    const reason = cause?.code ?? cause?.message ?? message;
    throw new ServiceCallError("UNAVAILABLE", `The service at ${url} is unavailable: ${reason}.`, { cause: error });
  }
  const body = (await response.json().catch(() => ({}))) as { title?: string; detail?: string };
  if (response.ok) return body;
  const why = body.detail ?? body.title ?? response.statusText;
  const { status } = response;
  const code = status >= 500 ? "UNAVAILABLE" : "REFUSED";
  throw new ServiceCallError(code, `The service at ${url} refused the call with status ${status}: ${why}.`, { status });
}
