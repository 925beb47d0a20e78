import type { EngineContext } from "./context.ts";
import type { Grant, Session } from "./session.ts";

/** Events of a session's life, for logs and counters. `SessionTransitions` (SESSIONS6) says which instance counts what. */
export class SessionEvents {
  readonly #engine: EngineContext;

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  /** `isNew`: no other instance has counted it. */
  created(session: Session, isNew: boolean): void {
    const { host, claims } = session;
    const isAdopted = session.isAdopted || !isNew;
    this.#engine.emit({
      type: "session-created",
      host: host.key,
      bucket: claims.bucket,
      session: claims.id,
      isAdopted,
    });
  }

  granted(session: Session, { fence, grantedAt }: Grant): void {
    const { host, claims } = session;
    const waitedMs = Math.max(0, grantedAt - claims.arrivedAt);
    this.#engine.emit({
      type: "granted",
      host: host.key,
      bucket: claims.bucket,
      session: claims.id,
      slot: fence,
      waitedMs,
    });
  }

  /** Turned away before the book had it. */
  throttled(session: Session, code: number): void {
    this.#engine.emit({ type: "throttled", ...nameOf(session), code });
  }

  /** Turned away before the book had it: a named semaphore has another capacity. */
  refused(session: Session): void {
    this.#engine.emit({ type: "canceled", ...nameOf(session), result: "canceled" });
  }

  moved(session: Session): void {
    this.#engine.emit({ type: "moved", ...nameOf(session) });
  }
}

function nameOf({ host, claims }: Session) {
  return { host: host.key, bucket: claims.bucket, session: claims.id };
}
