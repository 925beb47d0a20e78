import { SmallMap } from "../small-map.ts";
import type { Session } from "./session.ts";
import { SessionQuota } from "./session-quota.ts";

/** Finds the sessions of this instance by id, `requestId` or slot token, and counts those that wait. */
export class SessionRegister {
  readonly #byId = new SmallMap<string, Session>();
  readonly #byRequest = new SmallMap<string, Session>();
  readonly #byToken = new SmallMap<string, Session>();
  /** Decides whether a bucket may begin another session. */
  readonly quota = new SessionQuota();

  get size(): number {
    return this.#byId.size;
  }

  values(): Iterable<Session> {
    return this.#byId.values();
  }

  /** Sessions with a slot. */
  holders(): Iterable<Session> {
    return this.#byToken.values();
  }

  find(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  findRequest(key: string): Session | undefined {
    return this.#byRequest.get(key);
  }

  findToken(slotToken: string): Session | undefined {
    return this.#byToken.get(slotToken);
  }

  add(session: Session): void {
    this.#byId.set(session.claims.id, session);
    if (session.requestKey !== undefined) this.#byRequest.set(session.requestKey, session);
  }

  /** If a later session has the same id, it stays. */
  drop(session: Session): void {
    const { claims, requestKey, state } = session;
    if (this.#byId.get(claims.id) === session) this.#byId.delete(claims.id);
    if (requestKey !== undefined && this.#byRequest.get(requestKey) === session) this.#byRequest.delete(requestKey);
    if (state.kind === "granted") this.#byToken.delete(state.slotToken);
  }

  addToken(slotToken: string, session: Session): void {
    this.#byToken.set(slotToken, session);
  }

  dropToken(slotToken: string): void {
    this.#byToken.delete(slotToken);
  }

  /** The session starts (1) or stops (-1) waiting. */
  countPending({ claims: { bucket } }: Session, by: 1 | -1): void {
    if (by === 1) this.quota.add(bucket);
    else this.quota.remove(bucket);
  }
}
