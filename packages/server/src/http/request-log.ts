import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Exchange } from "./exchange.ts";

/** Lines that any caller can cause: a few a second at most. */
const LIMIT = { burst: 50, everyMs: 100 } as const;
const LONGEST_PATH = 200;

/**
 * A line for each request, by its end: refusals at info, failures at warn, all else at debug. A busy service must not be
 * a busy log, and what callers can cause is neither long nor endless.
 */
export class RequestLog {
  readonly #log: Logger;
  readonly #throttles = {
    error: new LogThrottle(LIMIT),
    warn: new LogThrottle(LIMIT),
    info: new LogThrottle(LIMIT),
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  done({ request, response, id, path, problemCode }: Exchange, tookMs: number): void {
    const status = response.writableEnded ? response.statusCode : 0;
    const level = status >= 500 ? "warn" : status >= 400 ? "info" : "debug";
    if (!this.#log.isOn(level)) return;
    const kept = level === "debug" ? {} : this.#admit(level);
    if (kept === undefined) return;
    const outcome = status === 0 ? { hungUp: true } : { status, code: problemCode };
    const asked = { requestId: id, method: request.method, path: shortened(path) };
    this.#log[level]("request", { ...asked, ...outcome, durationMs: Math.round(tookMs), ...kept });
  }

  failed({ id, path }: Exchange, error: unknown): void {
    const kept = this.#admit("error");
    if (kept !== undefined) this.#log.error("request failed", { requestId: id, path: shortened(path), error, ...kept });
  }

  /** Undefined: not logged. */
  #admit(level: "error" | "warn" | "info"): { unlogged?: number } | undefined {
    const unlogged = this.#throttles[level].take();
    if (unlogged === undefined) return undefined;
    return unlogged === 0 ? {} : { unlogged };
  }
}

function shortened(path: string): string {
  return path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`;
}
