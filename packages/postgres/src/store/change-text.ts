import {
  type BookRecord,
  type BreakerState,
  type Changes,
  type Head,
  RECORD_KINDS,
  type RecordKind,
  type RecordName,
  type RecordOf,
  revive,
} from "@slotkeeper/queue";

/**
 * The text form of changes in the tail of a host and in notifications: JSON lists instead of objects, half as long. A
 * commit writes this text in addition to its rows, so its length determines most of the write-ahead log. Only this file
 * reads it. Direct callers, which are written in SQL, write the same changes as the objects of `records.ts`.
 *
 *   changes  [head, breaker, puts, dels]
 *   head     fields in the order of `HEAD`; the breaker is a list of its own
 *   put      [number of the kind in RECORD_KINDS, key, fields in the order of `FIELDS`]
 *   del      [number of the kind, key]
 *
 * A field with its default value is null, and nulls at the end of a list are left out. Instants are relative to
 * `head.now`.
 */

/** Used instead of a default: the field is an instant. */
const AT = Symbol("instant");
/** Every field of an object with its default, in the order of the text. */
type Shape<T> = { readonly [Field in keyof T]-?: T[Field] | undefined | typeof AT };
type Data<Kind extends RecordKind> = Omit<RecordOf<Kind>, "kind" | "key">;
type Fields = readonly (readonly [field: string, preset: unknown])[];

const HEAD = fieldsOf<Omit<Head, "breaker">>({
  now: undefined,
  slots: Number.POSITIVE_INFINITY,
  fence: undefined,
  progress: undefined,
  meterAt: AT,
  avgWaitMs: 0,
  lastEndAt: AT,
  hostname: undefined,
  capacity: undefined,
  idleSince: AT,
  weighted: undefined,
  forgottenAt: AT,
});

const BREAKER = fieldsOf<BreakerState>({
  code: 0,
  errors: 0,
  successes: 0,
  consecutive: 0,
  openedAt: undefined,
  windowStartAt: undefined,
});

const FIELDS: { readonly [Kind in RecordKind]: Fields } = {
  lease: fieldsOf<Data<"lease">>({
    fence: undefined,
    session: undefined,
    bucket: undefined,
    instance: undefined,
    grantedAt: AT,
    endsAt: AT,
    keepUntil: AT,
    isReleased: false,
    isProbe: false,
  }),
  offer: fieldsOf<Data<"offer">>({
    bucket: undefined,
    instance: undefined,
    offeredAt: AT,
    lapsesAt: AT,
    isProbe: false,
  }),
  waiter: fieldsOf<Data<"waiter">>({
    instance: undefined,
    bucket: undefined,
    arrivedAt: AT,
    deadlineAt: AT,
    openMs: undefined,
    isInside: true,
    weight: 1,
    awayAt: AT,
  }),
  session: fieldsOf<Data<"session">>({
    keepUntil: AT,
    end: "released",
    instance: undefined,
    isExtended: undefined,
    code: undefined,
    retryAt: AT,
    endedAt: AT,
  }),
  account: fieldsOf<Data<"account">>({
    usedMs: undefined,
    asOf: AT,
    weight: 1,
    refusedAt: AT,
    weighted: undefined,
  }),
  cooldown: fieldsOf<Data<"cooldown">>({ until: AT }),
  absence: fieldsOf<Data<"absence">>({ missedAt: AT }),
  limits: fieldsOf<Data<"limits">>({ policy: undefined, loadedAt: undefined, live: undefined, hostname: undefined }),
};

type List = readonly unknown[];
type Lists = readonly [
  head: List,
  breaker: List,
  puts: readonly List[],
  dels: readonly (readonly [kind: number, key: string])[],
];

/** The changes of a commit as text. */
export function encodeChanges({ puts, dels }: Changes, head: Head): string {
  const lists: Lists = [
    listOf(head, HEAD, head.now),
    listOf(head.breaker, BREAKER, head.now),
    puts.map((record) => [numberOf(record.kind), record.key, ...listOf(record, FIELDS[record.kind], head.now)]),
    dels.map(([kind, key]) => [numberOf(kind), key]),
  ];
  return JSON.stringify(lists);
}

/** Decodes changes from their parsed text, or from the objects of a direct caller. */
export function decodeChanges(parsed: unknown): Changes {
  if (!Array.isArray(parsed)) {
    const { head, puts, dels } = parsed as Changes & { readonly head: Head };
    return { head: withSlots(head), puts: puts.map(revive), dels };
  }
  const [head, breaker, puts, dels] = parsed as unknown as Lists;
  const now = head[0] as number;
  return {
    head: { ...objectOf(head, HEAD, now), breaker: objectOf(breaker, BREAKER, now) } as Head,
    puts: puts.map((list) => recordOf(list, now)),
    dels: dels.map(([kind, key]): RecordName => [kindOf(kind), key]),
  };
}

/** Restores Infinity in a head from JSON, which has no Infinity. */
export function withSlots(head: Head): Head {
  return { ...head, slots: head.slots ?? Number.POSITIVE_INFINITY };
}

function recordOf([number, key, ...list]: List, now: number): BookRecord {
  const kind = kindOf(number as number);
  return revive({ kind, key, ...objectOf(list, FIELDS[kind], now) } as BookRecord);
}

function listOf(given: object, fields: Fields, now: number): unknown[] {
  const values = given as { readonly [field: string]: unknown };
  const list = fields.map(([field, preset]) => {
    const value = values[field];
    if (value === undefined || value === preset) return null;
    return preset === AT ? since(now, value as number) : value;
  });
  return list.slice(0, list.findLastIndex((value) => value !== null) + 1);
}

function objectOf(list: List, fields: Fields, now: number): object {
  const values = fields.map(([field, preset], at): [string, unknown] => {
    const value = list[at] ?? undefined;
    if (preset !== AT) return [field, value ?? preset];
    return [field, typeof value === "number" ? now + value : value && Number(value)];
  });
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** The difference in milliseconds, or the instant itself as text if adding the difference would not give the exact number. */
function since(now: number, instant: number): number | string {
  const ms = instant - now;
  return now + ms === instant ? ms : String(instant);
}

function fieldsOf<T>(shape: Shape<T>): Fields {
  return Object.entries(shape);
}

function numberOf(kind: RecordKind): number {
  return RECORD_KINDS.indexOf(kind);
}

function kindOf(number: number): RecordKind {
  const kind = RECORD_KINDS[number];
  if (kind === undefined) throw new TypeError(`Expected the number of a kind of records, got ${number}`);
  return kind;
}
