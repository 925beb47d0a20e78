// Runs one scenario of the rows in a Durable Object, and answers with what it found.
import type { BookRecord, Commit, Head, KeptHost, WaiterRecord } from "@slotkeeper/queue";
import { newHead } from "@slotkeeper/queue";
import { HostRows } from "../src/host-rows.ts";
import { SqlStore } from "../src/sql-store.ts";
import type { ObjectState, ObjectStorage } from "../src/workers.ts";

const HOST = "upstream.example.com";
const NOW = 1_790_000_000_000;
const clock = { now: () => NOW, setTimer: () => undefined, clearTimer: () => {} };

function storeOf(storage: ObjectStorage): SqlStore {
  return new SqlStore({ rows: new HostRows(storage, () => {}), clock, graceMs: 0, newTokenKey: () => "key" });
}

function waiterOf(at: number): WaiterRecord {
  const times = { arrivedAt: NOW - at, deadlineAt: NOW + 60_000, awayAt: NOW };
  return {
    kind: "waiter",
    key: `session-${at}`,
    bucket: `bucket-${"x".repeat(200)}-${at}`,
    weight: 1,
    instance: "one",
    openMs: undefined,
    ...times,
  } as unknown as WaiterRecord;
}

function leaseOf(at: number): BookRecord {
  const record = {
    kind: "lease",
    key: `slot_${at}`,
    fence: NOW * 1000 + at,
    session: `held-${at}`,
    bucket: "b",
    instance: "one",
  };
  return {
    ...record,
    grantedAt: NOW,
    endsAt: NOW + 60_000,
    isReleased: false,
    isProbe: false,
    keepUntil: NOW + 60_000,
  } as BookRecord;
}

const HEAD: Head = { ...newHead(NOW, 0), slots: Number.POSITIVE_INFINITY };
let commits = 0;

/** A commit on the last one. */
function commit(store: SqlStore, puts: readonly BookRecord[], fence: number): void {
  const head: Head = { ...HEAD, fence: NOW * 1000 + fence };
  const base = commits === 0 ? undefined : `${commits}.x`;
  const changes = { head, puts, dels: [] };
  const sent: Commit = {
    host: HOST,
    instance: "one",
    base,
    tag: `${++commits}.x`,
    now: NOW,
    changes,
    hasOthers: false,
    wake: [],
    conflicts: 0,
  };
  const reply = store.commit(sent);
  if (reply instanceof Promise || !reply.isOk) throw new Error("the commit was not accepted");
}

/** Comparable: records have no order. */
function seen(store: SqlStore): string {
  const [kept] = [...store.images()] as [KeptHost];
  const records = kept.records.map((record) => JSON.stringify(record)).toSorted();
  return JSON.stringify({ tag: kept.tag, head: { ...kept.head, slots: String(kept.head.slots) }, records });
}

const rowsIn = ({ sql }: ObjectStorage) =>
  [...sql.exec("SELECT count(*) AS count FROM slotkeeper_journal")][0]?.["count"];

const SCENARIOS: { readonly [name: string]: (storage: ObjectStorage) => unknown } = {
  /** Rows of 500 records, and a snapshot of several rows. */
  big(storage) {
    const store = storeOf(storage);
    commit(store, [leaseOf(0), ...Array.from({ length: 3_000 }, (_, at) => waiterOf(at))], 0);
    for (let at = 1; at <= 200; at++) commit(store, [leaseOf(at)], at);
    return { isSame: seen(storeOf(storage)) === seen(store), rows: rowsIn(storage) };
  },
  /** The table does not grow with the number of commits. */
  long(storage) {
    const store = storeOf(storage);
    for (let at = 0; at < 1_000; at++)
      commit(store, [leaseOf(at % 5 === 0 ? at : 0)].slice(0, at % 5 === 0 ? 1 : 0), at);
    return { isSame: seen(storeOf(storage)) === seen(store), rows: rowsIn(storage) };
  },
  /** Commits that only record waiters are written with the next row. */
  deferred(storage) {
    const store = storeOf(storage);
    commit(store, [leaseOf(0)], 0);
    for (let at = 0; at < 10; at++) commit(store, [waiterOf(at)], 0);
    const before = rowsIn(storage);
    const lost = seen(storeOf(storage)) === seen(store);
    commit(store, [leaseOf(1)], 1);
    return { before, after: rowsIn(storage), lost, isSame: seen(storeOf(storage)) === seen(store) };
  },
  /** A write that fails has no effect, and may be repeated. */
  async failing(storage) {
    let [left, isFailing] = [1, false];
    const exec: ObjectStorage["sql"]["exec"] = (query, ...values) => {
      if (isFailing && query.startsWith("INSERT OR REPLACE") && left-- === 0) throw new Error("disk full");
      return storage.sql.exec(query, ...values);
    };
    const broken = { ...storage, sql: { exec }, transactionSync: <T>(work: () => T) => storage.transactionSync(work) };
    const store = storeOf(broken);
    commit(store, [leaseOf(0)], 0);
    const before = seen(store);
    isFailing = true;
    const many = Array.from({ length: 3_000 }, (_, at) => waiterOf(at));
    const [tag, base] = [`${commits + 1}.x`, `${commits}.x`];
    const head: Head = { ...HEAD, fence: NOW * 1000 + 1 };
    const changes = { head, puts: [leaseOf(1), ...many], dels: [] };
    const sent: Commit = {
      host: HOST,
      instance: "one",
      base,
      tag,
      now: NOW,
      changes,
      hasOthers: false,
      wake: [],
      conflicts: 0,
    };
    const failure = await Promise.resolve(store.commit(sent)).catch((error: Error) => error.message);
    const unchanged = seen(store) === before && seen(storeOf(storage)) === before;
    isFailing = false;
    const again = await store.commit(sent);
    return { failure, unchanged, isOk: again.isOk, isSame: seen(storeOf(storage)) === seen(store) };
  },
  /** Written by a later version: nothing is changed. */
  later(storage) {
    commit(storeOf(storage), [leaseOf(0)], 0);
    storage.sql.exec("UPDATE slotkeeper SET value = 2 WHERE name = 'schema'");
    try {
      storeOf(storage);
      return "opened";
    } catch (error) {
      return (error as Error).message;
    }
  },
};

/** Puts recorded rows into the storage, and returns what is restored from them. */
function restoreRows(storage: ObjectStorage, rows: readonly { readonly [column: string]: string | number }[]) {
  commit(storeOf(storage), [leaseOf(9)], 9);
  storage.sql.exec("DELETE FROM slotkeeper_journal");
  for (const { slot = 0, seq = 0, start = 0, body = "" } of rows) {
    const values = [slot, seq, start, body];
    storage.sql.exec("INSERT INTO slotkeeper_journal (slot, seq, start, body) VALUES (?, ?, ?, ?)", ...values);
  }
  const store = storeOf(storage);
  const [kept] = [...store.images()] as [KeptHost];
  const names = kept.records.map(({ kind, key }) => `${kind} ${key}`).toSorted();
  return { keys: store.tokenKeys, tag: kept.tag, fence: kept.head.fence, names };
}

export class Rows {
  readonly #storage: ObjectStorage;

  constructor({ storage }: ObjectState) {
    this.#storage = storage;
  }

  async fetch(request: Request): Promise<Response> {
    commits = 0;
    const name = new URL(request.url).pathname.slice(1);
    if (name === "restore") return Response.json(restoreRows(this.#storage, await request.json()));
    return Response.json(await SCENARIOS[name]?.(this.#storage));
  }
}

export default {
  fetch(request: Request, env: { ROWS: { get(id: unknown): Rows; idFromName(name: string): unknown } }) {
    return env.ROWS.get(env.ROWS.idFromName(request.url)).fetch(request);
  },
};
