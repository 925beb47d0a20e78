import { LIMITS } from "@slotkeeper/protocol";
import { PATTERNS } from "@slotkeeper/protocol/schemas";
import type { FieldProblem } from "../validation/field-problem.ts";
import type { Exchange } from "./exchange.ts";
import { type NamedHost, namedHost } from "./host-key.ts";
import type { ServiceContext } from "./service-context.ts";

const PRINTABLE = new RegExp(PATTERNS.printable.source);
/** SHA-256 in hex: what the service makes of a name. Nobody names a host so. */
const KEY = /^[0-9a-f]{64}$/;

type Found = NamedHost | { readonly errors: readonly FieldProblem[] };

/** The host an operator means: a name, or a key as the state tells it. Keys that do not look like one need `?by=key`. */
export function operatorsHost(exchange: Exchange, text: string, { queue }: ServiceContext): Found {
  const by = queryOf(exchange).get("by");
  const errors: FieldProblem[] = [];
  if (by !== null && by !== "key" && by !== "name") {
    errors.push({ field: "by", message: `Expected \`by\` to be \`key\` or \`name\`, got ${JSON.stringify(by)}` });
  }
  const isKey = by === "key" || (by !== "name" && KEY.test(text));
  const most = isKey ? LIMITS.hostnameHashLength : LIMITS.hostnameLength;
  if (text === "" || text.length > most || !PRINTABLE.test(text)) {
    const message = `Expected \`host\` to be 1 to ${most} characters, none of them a control character`;
    errors.push({ field: "host", message });
  }
  if (errors.length > 0) return { errors };
  if (isKey) return { host: text, hostname: queue.glance(text)?.hostname };
  return namedHost({ hostname: text }) as NamedHost;
}

/** The segment at this place, counted from the API's prefix; undefined: it does not decode. */
export function segmentOf({ path }: Exchange, place: number): string | undefined {
  try {
    return decodeURIComponent(path.split("/")[place + 3] ?? "");
  } catch {
    return undefined;
  }
}

export function queryOf({ request }: Exchange): URLSearchParams {
  return new URL(request.url ?? "/", "http://service").searchParams;
}
