import type { Session } from "./session.ts";

/** Finds the sessions of this instance by what callers bring, and counts those that wait. */
export class SessionRegister {
  readonly #byId = new Map<string, Session>();
  readonly #byRequest = new Map<string, Session>();
  readonly #byToken = new Map<string, Session>();
  readonly #pendingOf = new Map<string, number>();
  #pending = 0;

  get size(): number {
    return this.#byId.size;
  }

  get pending(): number {
    return this.#pending;
  }

  /** Pending sessions of a bucket, over all hosts. */
  pendingOf(bucket: string): number {
    return this.#pendingOf.get(bucket) ?? 0;
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

  /** A later session may have its name, and stays. */
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

  countPending({ claims: { bucket } }: Session, by: 1 | -1): void {
    this.#pending += by;
    const count = this.pendingOf(bucket) + by;
    if (count > 0) this.#pendingOf.set(bucket, count);
    else this.#pendingOf.delete(bucket);
  }
}
