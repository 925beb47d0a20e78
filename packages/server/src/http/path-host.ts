import { LIMITS } from "@slotkeeper/protocol";
import { PATTERNS } from "@slotkeeper/protocol/schemas";
import { type HostDirectory, type NamedHost, plainName } from "../queue/names.ts";
import { nearMatch } from "../words/near-match.ts";
import type { FieldProblem } from "../words/validator.ts";
import type { OperatorContext } from "./context.ts";
import type { Exchange } from "./exchange.ts";

const PRINTABLE = new RegExp(PATTERNS.printable.source, "u");
/** SHA-256 in hex, as the service computes it from a name. No host has such a name. */
const KEY = /^[0-9a-f]{64}$/i;

type Found = NamedHost | { readonly errors: readonly FieldProblem[] };

/** The host that an operator means: a name, or a key as the state shows it. Other keys need `?by=key`. */
export function operatorsHost(exchange: Exchange, text: string, { queue, live }: OperatorContext): Found {
  const { query } = exchange;
  const by = query.get("by");
  const errors = [...oneOf(query, "by", ["key", "name"]), ...oneOf(query, "new", ["true", "false"])];
  const isKey = isKeyOf(text, by);
  const most = isKey ? LIMITS.hostnameHashLength : LIMITS.hostnameLength;
  if (text === "" || text.length > most || !PRINTABLE.test(text)) {
    const message = `Expected \`host\` to be 1 to ${most} characters without control characters`;
    errors.push({ field: "host", message });
  }
  if (errors.length > 0) return { errors };
  const host = hostInPath(text, by, live.hosts.keyOf);
  return { host, hostname: isKey ? (queue.glance(host)?.hostname ?? live.hosts.names.get(host)) : plainName(text) };
}

function oneOf(query: URLSearchParams, field: string, allowed: readonly string[]): FieldProblem[] {
  const given = query.get(field);
  if (given === null || allowed.includes(given)) return [];
  const expected = allowed.map((value) => `\`${value}\``).join(" or ");
  return [{ field, message: `Expected \`${field}\` to be ${expected}, got ${JSON.stringify(given)}` }];
}

/** The key of the host that an operator names. `by` is the parameter of the query. */
export function hostInPath(text: string, by: string | null, keyOf: HostDirectory["keyOf"]): string {
  return isKeyOf(text, by) ? text.toLowerCase() : keyOf(plainName(text));
}

function isKeyOf(text: string, by: string | null): boolean {
  return by === "key" || (by !== "name" && KEY.test(text));
}

/** Parses `<host key>.<fence>`. A host key may contain dots, a fence does not, so the last dot divides them. */
export function slotNamed(id: string): { readonly host: string; readonly fence: number } | undefined {
  const at = id.lastIndexOf(".");
  const [host, digits] = [id.slice(0, Math.max(0, at)), id.slice(at + 1)];
  const fence = Number(digits);
  const isSound = host !== "" && /^[1-9]\d{0,15}$/.test(digits) && Number.isSafeInteger(fence);
  return isSound ? { host, fence } : undefined;
}

/**
 * Why an operator's action on this host is refused if the host is unknown: its name may be mistyped, and the action
 * would have no effect. A host is known to the queue, to the store or to the configuration, or the call has `new=true`.
 * A service that knows no host at all accepts any name, because it has nothing to compare it with.
 */
export async function unknownHost(
  exchange: Exchange,
  { host, hostname }: Pick<NamedHost, "host"> & Partial<NamedHost>,
  { queue, live, telemetry }: OperatorContext,
): Promise<string | undefined> {
  if (exchange.query.get("new") === "true" || queue.glance(host) !== undefined) return undefined;
  if (hostname !== undefined && live.hosts.isConfigured(hostname)) return undefined;
  const { reader } = telemetry;
  if ((await reader.hosts([host])).size > 0) return undefined;
  const isAnyKnown = queue.hostCount + live.hosts.names.size > 0 || (await reader.store.hostKeys()).length > 0;
  if (!isAnyKnown) return undefined;
  const near = hostname === undefined ? undefined : nearMatch(hostname, namesToCompare(queue, live));
  const hint = near === undefined ? "" : ` Did you mean \`${near}\`?`;
  return `No host ${JSON.stringify(hostname ?? host)} is known.${hint} To prepare a host that has not been used yet, add \`?new=true\` (\`--new\` on the command line).`;
}

/** How many names an unknown one is compared with: those that callers used last may be missing. */
const MOST_NAMES = 1_000;

function* namesToCompare(queue: OperatorContext["queue"], live: OperatorContext["live"]): Iterable<string> {
  yield* first(MOST_NAMES, live.hosts.names.values());
  for (const key of first(MOST_NAMES, queue.hostKeys())) {
    const { hostname } = queue.glance(key) ?? {};
    if (hostname !== undefined) yield hostname;
  }
}

function* first<T>(count: number, items: Iterable<T>): Iterable<T> {
  let left = count;
  for (const item of items) {
    if (left-- <= 0) return;
    yield item;
  }
}

/** The segment at this index after the prefix of the API; `undefined` if it cannot be decoded. */
export function segmentOf({ path }: Exchange, place: number): string | undefined {
  try {
    return decodeURIComponent(path.split("/")[place + 3] ?? "");
  } catch {
    return undefined;
  }
}
