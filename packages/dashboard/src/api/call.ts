import { signal } from "@preact/signals";

/** The internal token, in memory only: a reload asks for it again, and it is never in an address or in storage. */
export const token = signal<string | undefined>(undefined);

/** The service answered and refused the call. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/** The internal API is hidden from us: the token is missing or wrong, or we are not on the machine of the service. */
export class DeniedError extends RefusedError {}

const PREFIX = "/api/v0";

/** Calls the internal API. Throws a `RefusedError` for a refusal, or the error of `fetch` if nothing answers. */
export async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value !== undefined) headers.set("Authorization", `Bearer ${token.value}`);
  const response = await fetch(PREFIX + path, { ...init, headers, cache: "no-store", credentials: "omit" });
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function read<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await call(path, { signal });
  return (await response.json()) as T;
}

export async function act(method: "POST" | "DELETE", path: string, body?: object): Promise<void> {
  const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  await call(path, { ...init, headers: { "Content-Type": "application/json" } });
}

/** A 404 with a reason is about a missing thing. A 404 without one means that the route is hidden from us. */
async function refusal(response: Response): Promise<RefusedError> {
  const { status } = response;
  const problem = (await response.json().catch(() => ({}))) as {
    title?: string;
    detail?: string;
    errors?: { message: string }[];
  };
  if (status === 404 && problem.detail === undefined) return new DeniedError("No access");
  const reasons = (problem.errors ?? []).map(({ message }) => message);
  const text = reasons.length > 0 ? reasons.join(". ") : (problem.detail ?? problem.title ?? `HTTP ${status}`);
  return new RefusedError(text);
}
