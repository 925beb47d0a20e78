import type { CallName } from "./line.ts";
import type { HistoryRecorder } from "./recorder.ts";

const CALLERS = /\/api\/v0\/fairqueue\/(acquire|release|renew|cancel|report)$/;
const LIMITS = /\/api\/v0\/hosts\/([^/?]+)(\/breaker)?$/;
const SLOTS = /\/api\/v0\/slots\/([^/?]+)$/;

/** A `fetch` that records the calls of one client to the service. Give it to a `SlotClient`, or use it directly. */
export function recordingFetch(recorder: HistoryRecorder, client?: string, send: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const call = nameOf(url.pathname, init);
    if (call === undefined) return send(input, init);
    const open = recorder.sent(call.name, call.ask, client);
    try {
      const response = await send(input, init);
      const text = await response.text();
      if (response.status >= 500) open.gaveUp();
      else open.answered(response.status, parsed(text));
      const { status, statusText, headers } = response;
      return new Response(text === "" ? null : text, { status, statusText, headers });
    } catch (error) {
      open.gaveUp();
      throw error;
    }
  };
}

function nameOf(path: string, init: RequestInit | undefined): { name: CallName; ask: object } | undefined {
  const ask = typeof init?.body === "string" ? parsed(init.body) : {};
  const caller = CALLERS.exec(path);
  if (caller !== null) return { name: caller[1] as CallName, ask };
  const slot = SLOTS.exec(path);
  if (slot !== null && init?.method === "DELETE")
    return { name: "revoke", ask: { slot: decodeURIComponent(slot[1] ?? "") } };
  const host = LIMITS.exec(path);
  if (host === null || init?.method !== "POST") return undefined;
  return {
    name: host[2] === undefined ? "limits" : "breaker",
    ask: { ...ask, host: decodeURIComponent(host[1] ?? "") },
  };
}

function parsed(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
