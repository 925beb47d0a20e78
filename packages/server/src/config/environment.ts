import { nearMatch } from "../words/near-match.ts";
import { CONFIG_KEYS, type ConfigKeySchema, setAt } from "./config-keys.ts";
import type { Tree } from "./layers.ts";

export interface Environment {
  readonly [name: string]: string | undefined;
}

const PREFIX = "SLOTKEEPER_";
/** Variables that Kubernetes creates for a service of that name. No key of the configuration has such a name. */
const OF_A_CLUSTER = /_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

/** Variables of the commands that call a service, and of the command that `exec` runs. The service ignores them. */
const OF_COMMANDS: ReadonlySet<string> = new Set(
  ["URL", "TOKEN", "INTERNAL_TOKEN", "SOCKET", "SLOT", "FENCE", "NAME", "HELD"].map((name) => `${PREFIX}${name}`),
);

/**
 * The layer of the `SLOTKEEPER_…` variables. An empty variable counts as absent, because that is how an unset value
 * reaches a container. A value that does not have the type of its key stays a string, and the schema reports it with
 * its path.
 */
export function readEnvironment(environment: Environment): { readonly tree: Tree; readonly problems: string[] } {
  const tree: { [key: string]: unknown } = {};
  const problems: string[] = [];
  const known = new Map(CONFIG_KEYS.map((key) => [key.variable, key]));
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || value === undefined || value === "") continue;
    const key = known.get(name);
    if (key !== undefined) setAt(tree, key.path, parse(value, key.schema));
    else if (!OF_COMMANDS.has(name) && !isOfACluster(name, value)) problems.push(unknownVariable(name, known.keys()));
  }
  return { tree, problems };
}

function isOfACluster(name: string, value: string): boolean {
  if (name.startsWith(`${PREFIX}SERVICE_`) || OF_A_CLUSTER.test(name)) return true;
  return name.endsWith("_PORT") && /^(?:tcp|udp|sctp):\/\//.test(value);
}

/** The prefix is the same for all, so only the rest of the names is compared. */
function unknownVariable(name: string, known: Iterable<string>): string {
  const rest = Array.from([...known, ...OF_COMMANDS], (other) => other.slice(PREFIX.length));
  const near = nearMatch(name.slice(PREFIX.length), rest);
  return `Unknown variable \`${name}\`${near === undefined ? "" : `: did you mean \`${PREFIX}${near}\`?`} (environment)`;
}

function parse(text: string, schema: ConfigKeySchema): unknown {
  switch (schema.type) {
    case "number":
    case "integer":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
    case "boolean":
      return text === "true" ? true : text === "false" ? false : text;
    case "array":
      return text.trimStart().startsWith("[") ? fromJson(text) : parseList(text, schema.items ?? {});
    case "object":
      return fromJson(text);
    case undefined:
    default:
      return text;
  }
}

function parseList(text: string, items: ConfigKeySchema): unknown[] {
  return text.split(",").map((item) => parse(item.trim(), items));
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
