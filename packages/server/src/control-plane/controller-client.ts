import type { ControllerAddress } from "../config/settings.ts";
import { ControllerError } from "./controller-error.ts";

/** The largest answer that is read. A configuration of a thousand hosts has a tenth of it. */
const ANSWER_BYTES = 4 * 1024 * 1024;

/**
 * Sends `POST {base}/{path}` with the bearer token, and returns the answer if it is a 2xx, without reading its body.
 * Throws a `ControllerError` whose message contains neither the token nor the address, because an address may contain a
 * secret. A redirect is not followed, because it would send the token elsewhere.
 */
export async function postToController(
  { base, apiToken }: ControllerAddress,
  path: "bootstrap" | "metrics",
  body: object,
  timeoutMs: number,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${base}/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiToken}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    throw unanswered(path, error, timeoutMs);
  }
  if (response.ok) return response;
  const { status } = response;
  dismiss(response);
  const kind = status >= 400 && status < 500 ? "refused" : "unanswered";
  throw new ControllerError(kind, `the controller answered ${path} with ${status}`, status);
}

/** Discards a body so that the connection is freed; errors while doing so are ignored. */
export function dismiss({ body }: Response): void {
  body?.cancel().catch(() => {});
}

export async function jsonOf(response: Response, path: string, timeoutMs: number): Promise<unknown> {
  let text: string;
  try {
    text = await boundedText(response, path);
  } catch (error) {
    throw error instanceof ControllerError ? error : unanswered(path, error, timeoutMs);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ControllerError("unanswered", `the controller's answer to ${path} is not JSON`);
  }
}

async function boundedText(response: Response, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop early cancels the body.
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > ANSWER_BYTES) throw new ControllerError("unanswered", `the controller's answer to ${path} is too long`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function unanswered(path: string, error: unknown, timeoutMs: number): ControllerError {
  const { name, cause } = error as Error;
  const { code = "the connection failed" } = (cause ?? {}) as { code?: string };
  const reason = name === "TimeoutError" ? `not within ${timeoutMs} ms` : code;
  return new ControllerError("unanswered", `the controller did not answer ${path}: ${reason}`);
}
