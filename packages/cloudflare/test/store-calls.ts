/** A call of a store, as text. JSON has no infinity, no maps and no undefined. */
interface StoreCall {
  readonly name: string;
  readonly args: readonly unknown[];
  /** The time of the store's clock. */
  readonly now: number;
}

const INFINITE = "\u0000infinite";
const ABSENT = "\u0000absent";

export function pack(value: unknown): string {
  return JSON.stringify(value === undefined ? ABSENT : value, (_, one: unknown) => {
    if (one === undefined) return ABSENT;
    if (one === Number.POSITIVE_INFINITY) return INFINITE;
    return one instanceof Map ? { entries: [...one] } : one;
  });
}

export function unpack(text: string): unknown {
  return unpacked(JSON.parse(text));
}

/** What `pack` made of a call. */
export function unpackCall(text: string): StoreCall {
  return unpack(text) as StoreCall;
}

function unpacked(value: unknown): unknown {
  if (value === ABSENT) return undefined;
  if (value === INFINITE) return Number.POSITIVE_INFINITY;
  if (Array.isArray(value)) return value.map(unpacked);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([key, one]) => [key, unpacked(one)] as const);
  const [first] = fields;
  return first?.[0] === "entries" ? new Map(first[1] as [unknown, unknown][]) : Object.fromEntries(fields);
}
