import { SmallMap } from "../small-map.ts";
import { type BookRecord, RECORD_KINDS, type RecordKind, type RecordOf } from "./records.ts";

/** Records by kind and key. A kind without records costs nothing: most hosts have only a few kinds. */
export class RecordsByKind {
  // Fields, not a map of maps: a decision reads this about thirty times.
  readonly #maps: { [K in RecordKind]: SmallMap<string, RecordOf<K>> | undefined } = {
    lease: undefined,
    offer: undefined,
    waiter: undefined,
    ending: undefined,
    account: undefined,
    cooldown: undefined,
    absence: undefined,
    budget: undefined,
    limits: undefined,
  };

  get<K extends RecordKind>(kind: K, key: string): RecordOf<K> | undefined {
    return this.#maps[kind]?.get(key);
  }

  size(kind: RecordKind): number {
    return this.#maps[kind]?.size ?? 0;
  }

  all<K extends RecordKind>(kind: K): Iterable<RecordOf<K>> {
    return this.#maps[kind]?.values() ?? [];
  }

  set(record: BookRecord): void {
    const { kind } = record;
    let map = this.#maps[kind] as SmallMap<string, BookRecord> | undefined;
    if (map === undefined) {
      map = new SmallMap();
      (this.#maps as { [kind: string]: SmallMap<string, BookRecord> | undefined })[kind] = map;
    }
    map.set(record.key, record);
  }

  delete(kind: RecordKind, key: string): void {
    this.#maps[kind]?.delete(key);
  }

  *[Symbol.iterator](): Iterator<BookRecord> {
    for (const kind of RECORD_KINDS) yield* this.all(kind);
  }
}
