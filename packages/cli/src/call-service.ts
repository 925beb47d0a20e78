import { mustBeCarried } from "./carried.ts";
import { DEFAULT_URL } from "./service-flags.ts";

export class ServiceCallError extends Error {
  readonly code: "UNAVAILABLE" | "REFUSED";

  constructor(code: "UNAVAILABLE" | "REFUSED", message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** One call outside a session. The answer's JSON; throws a `ServiceCallError` in a sentence. */
export async function callService(url = DEFAULT_URL, path: string, init: RequestInit): Promise<unknown> {
  mustBeCarried({ url });
  let response: Response;
  try {
    response = await fetch(url.replace(/\/+$/, "") + path, { ...init, signal: AbortSignal.timeout(8_000) });
  } catch (error) {
    const { message, cause } = error as { message: string; cause?: { code?: string; message?: string } };
    throw new ServiceCallError(
      "UNAVAILABLE",
      `The service at ${url} is unavailable: ${cause?.code ?? cause?.message ?? message}.`,
      error,
    );
  }
  const body = (await response.json().catch(() => ({}))) as { title?: string; detail?: string };
  if (response.ok) return body;
  const why = body.detail ?? body.title ?? response.statusText;
  const code = response.status >= 500 ? "UNAVAILABLE" : "REFUSED";
  throw new ServiceCallError(code, `The service at ${url} refused the call with status ${response.status}: ${why}.`);
}
