import { systemWords } from "@slotkeeper/server/words";
import { DEFAULT_URL } from "./commands/shared-options.ts";
import { addressOf } from "./service-flags.ts";

export class ServiceCallError extends Error {
  readonly code: "UNAVAILABLE" | "REFUSED";
  /** The HTTP status of the answer; `undefined` if there was none. */
  readonly status: number | undefined;
  /** Whether the service said more than what the status means. */
  readonly isExplained: boolean;

  constructor(code: "UNAVAILABLE" | "REFUSED", message: string, { cause, status, isExplained = false }: About = {}) {
    super(message, { cause });
    this.code = code;
    this.status = status;
    this.isExplained = isExplained;
  }
}

interface About {
  readonly cause?: unknown;
  readonly status?: number;
  readonly isExplained?: boolean;
}

/** The part of a problem document that is shown. */
interface Problem {
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly { readonly message: string }[];
}

const ANSWER_MS = 8_000;

/** Makes one call outside a session and returns the JSON of the answer; empty if it has none. Throws as `answerTo`. */
export async function callService(given: string | undefined, path: string, init: RequestInit): Promise<unknown> {
  const response = await answerTo(given, path, init);
  return response.json().catch(() => ({}));
}

/** Makes one call outside a session. Throws a `ServiceCallError` with a sentence. `given` is the value of `--url`. */
export async function answerTo(given: string | undefined, path: string, init: RequestInit): Promise<Response> {
  const url = addressOf(given);
  let response: Response;
  try {
    response = await fetch(url.replace(/\/+$/, "") + path, { signal: AbortSignal.timeout(ANSWER_MS), ...init });
  } catch (error) {
    throw new ServiceCallError("UNAVAILABLE", unavailable(url, error), { cause: error });
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => ({}))) as Problem;
  const { status, statusText } = response;
  const said = body.errors?.map(({ message }) => message).join("; ") ?? body.detail;
  const why = (said ?? body.title ?? statusText).replace(/\.$/, "");
  const code = status >= 500 ? "UNAVAILABLE" : "REFUSED";
  throw new ServiceCallError(code, `The service at ${url} refused the call with status ${status}: ${why}.`, {
    status,
    isExplained: said !== undefined,
  });
}

/** Why nothing answers at the address, from the error of `fetch`. */
export function unavailable(url: string, error: unknown): string {
  const hint = url === DEFAULT_URL ? " Start one with `slotkeeper serve`, or set SLOTKEEPER_URL or --url." : "";
  return `The service at ${url} is unavailable: ${systemWords(error)}.${hint}`;
}
