import { LogThrottle } from "../log/log-throttle.ts";
import type { Logger } from "../log/logger.ts";
import type { Exchange } from "./exchange.ts";
import { traceparentOf } from "./holder-traces.ts";

/** Limits lines that any caller can cause to a few per second. */
const LIMIT = { burst: 50, everyMs: 100 } as const;
const LONGEST_PATH = 200;

/**
 * One line for each request, at its end: refusals at info, failures at warn, all others at debug. So a busy service
 * does not fill the log, and lines that callers can cause are short and limited in number.
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

  done(exchange: Exchange, tookMs: number): void {
    const { status } = exchange;
    const level = status >= 500 ? "warn" : status >= 400 ? "info" : "debug";
    if (!this.#log.isOn(level)) return;
    const kept = level === "debug" ? {} : this.#admit(level);
    if (kept === undefined) return;
    const outcome = status === 0 ? { hungUp: true } : { status, code: exchange.problemCode };
    const asked = {
      requestId: exchange.id,
      ...traceId(exchange),
      method: exchange.method,
      path: shortened(exchange.path),
    };
    this.#log[level]("request", { ...asked, ...outcome, durationMs: Math.round(tookMs), ...kept });
  }

  failed(exchange: Exchange, error: unknown): void {
    const kept = this.#admit("error");
    if (kept === undefined) return;
    const asked = { requestId: exchange.id, ...traceId(exchange), path: shortened(exchange.path) };
    this.#log.error("request failed", { ...asked, error, ...kept });
  }

  /** Returns `undefined` if the line is not logged. */
  #admit(level: "error" | "warn" | "info"): { unlogged?: number } | undefined {
    const unlogged = this.#throttles[level].take();
    if (unlogged === undefined) return undefined;
    return unlogged === 0 ? {} : { unlogged };
  }
}

/** The trace of the caller, to find the line from it. */
function traceId(exchange: Exchange): { traceId?: string } {
  const traceparent = traceparentOf(exchange);
  return traceparent === undefined ? {} : { traceId: traceparent.slice(3, 35) };
}

function shortened(path: string): string {
  return path.length <= LONGEST_PATH ? path : `${path.slice(0, LONGEST_PATH)}…`;
}
