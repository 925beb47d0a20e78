import type { EngineContext } from "./context.ts";
import type { Grant, Session } from "./session.ts";

/** Emits the events of a session for logs and counters. `SessionTransitions` (SESSIONS6) defines which instance counts what. */
export class SessionEvents {
  readonly #engine: EngineContext;

  constructor(engine: EngineContext) {
    this.#engine = engine;
  }

  /** `isNew`: no other instance has counted the session. */
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

  /** The session was refused before it was in the book. */
  throttled(session: Session, code: number): void {
    this.#engine.emit({ type: "throttled", ...nameOf(session), code });
  }

  /** The session was refused before it was in the book, because the named semaphore has a different capacity. */
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
