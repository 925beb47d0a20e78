/**
 * The parts of the Workers runtime that this package uses, by their shape. So it needs no package of types, and works with
 * any version of them.
 */

/** A binding of a Durable Object class. */
export interface SlotNamespace {
  idFromName(name: string): unknown;
  get(id: unknown, options?: { locationHint?: string }): SlotStub;
  jurisdiction(name: string): SlotNamespace;
}

/** One object, as its callers see it. */
export interface SlotStub {
  fetch(input: string, init?: RequestInit): Promise<Response>;
}

/** What the runtime gives to an object: the argument `ctx` of its constructor. */
export interface ObjectState {
  readonly id: { readonly jurisdiction?: string | undefined; toString(): string };
  readonly storage: ObjectStorage;
  waitUntil(promise: Promise<unknown>): void;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}

export interface ObjectStorage {
  readonly sql: SqlStorage;
  /** Undoes what `work` wrote if it throws. */
  transactionSync<T>(work: () => T): T;
  setAlarm(at: number): Promise<void>;
  deleteAlarm(): Promise<void>;
  deleteAll(): Promise<void>;
}

export interface SqlStorage {
  exec(query: string, ...bindings: (string | number)[]): Iterable<{ [column: string]: unknown }>;
}
