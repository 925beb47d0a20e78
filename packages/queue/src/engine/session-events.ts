import type { EngineContext } from "./context.ts";
import type { Granted, Session } from "./session.ts";

/** Events of a session's life, for logs and counters. `SessionTransitions` (SESSIONS6) says which instance counts what. */
export class SessionEvents {
  readonly #engine: EngineContext;

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  /** `isNew`: no other instance has counted it. */
  created(session: Session, isNew: boolean): void {
    const isAdopted = session.isAdopted || !isNew;
    this.#engine.emit({ type: "session-created", ...nameOf(session), isAdopted });
  }

  granted(session: Session, { fence, grantedAt }: Granted): void {
    const waitedMs = Math.max(0, grantedAt - session.claims.arrivedAt);
    this.#engine.emit({ type: "granted", ...nameOf(session), slot: fence, waitedMs });
  }

  /** Without a slot, as its state says. */
  ended(session: Session): void {
    const { state, claims } = session;
    const { emit, time } = this.#engine;
    if (state.kind === "throttled") emit({ type: "throttled", ...nameOf(session), code: state.code });
    else if (state.kind === "canceled") emit({ type: "canceled", ...nameOf(session), result: "canceled" });
    else if (state.kind === "timeout") {
      const waitedMs = Math.max(0, Math.min(time.now(), claims.deadlineAt) - claims.arrivedAt);
      emit({ type: "timeout", ...nameOf(session), reason: state.reason, waitedMs });
    }
  }

  moved(session: Session): void {
    this.#engine.emit({ type: "moved", ...nameOf(session) });
  }
}

function nameOf({ host, claims }: Session) {
  return { host: host.key, bucket: claims.bucket, session: claims.id };
}
