import type { EngineContext } from "./context.ts";
import type { Session } from "./session.ts";

/**
 * What is told of a session's life, to logs and counters. Counted once in the fleet: begun by the instance of its first call,
 * ended by the instance that has it then. The others say `moved`.
 */
export class SessionEvents {
  readonly #engine: EngineContext;

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  created(session: Session): void {
    this.#engine.emit({ type: "session-created", ...nameOf(session), isAdopted: session.isAdopted });
  }

  granted(session: Session): void {
    const { state, claims } = session;
    if (state.kind !== "granted") return;
    const waitedMs = Math.max(0, state.grantedAt - claims.arrivedAt);
    this.#engine.emit({ type: "granted", ...nameOf(session), slot: state.fence, waitedMs });
  }

  throttled(session: Session, code: number): void {
    this.#engine.emit({ type: "throttled", ...nameOf(session), code });
  }

  timeout(session: Session): void {
    const { state, claims } = session;
    if (state.kind !== "timeout") return;
    const waitedMs = Math.max(0, Math.min(this.#engine.time.now(), claims.deadlineAt) - claims.arrivedAt);
    this.#engine.emit({ type: "timeout", ...nameOf(session), reason: state.reason, waitedMs });
  }

  canceled(session: Session): void {
    this.#engine.emit({ type: "canceled", ...nameOf(session), result: "canceled" });
  }

  moved(session: Session): void {
    this.#engine.emit({ type: "moved", ...nameOf(session) });
  }
}

function nameOf({ host, claims }: Session) {
  return { host: host.key, bucket: claims.bucket, session: claims.id };
}
