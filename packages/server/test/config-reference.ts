import { WEIGHT } from "@slotkeeper/protocol";
import { ConfigSchema, PATTERNS } from "@slotkeeper/protocol/schemas";

interface Item {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly default?: unknown;
  readonly description?: string;
  readonly writeOnly?: boolean;
  readonly properties?: Record<string, Item>;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly defaultAt?: string;
  readonly aliasOf?: string;
}

/** `docs/reference/config.md`, from the schema. */
export function configReference(): string {
  const { $schema: _editor, fairQueue, ...service } = (ConfigSchema as Item).properties ?? {};
  return `# Configuration

<!-- Made from the schema: \`WRITE_DOCUMENTS=1 npx vitest run packages/server/test/documents.test.ts\` writes it. -->

Every key of the service's configuration. \`slotkeeper serve -c config.json\` reads it from a JSON file. Without a file the service uses the
defaults: it keeps its state in memory and listens on \`127.0.0.1:8080\`. With
\`"$schema": "./node_modules/@slotkeeper/protocol/schema/config.schema.json"\` in the file, editors complete and check it.

- **Precedence**: for each key a flag wins over the environment, then come the [controller](../guides/control-plane.md), the file, and the
  default. \`slotkeeper serve --print-config\` shows every value and where it comes from. It hides secrets.
- **Environment variables**: \`SLOTKEEPER_\` and the path of the key in upper snake case, with \`__\` between levels. For example,
  \`fairQueue.maxWaitMs\` is \`SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS\`. Lists are comma-separated or JSON; \`fairQueue.hosts\` is JSON. An empty
  variable counts as absent. The service refuses to start with an unknown one, because it is probably misspelt. It ignores the variables that
  Kubernetes sets by itself (\`SLOTKEEPER_PORT=tcp://…\`, \`SLOTKEEPER_SERVICE_…\`), and those of the commands (\`SLOTKEEPER_\` and \`URL\`, \`TOKEN\`,
  \`INTERNAL_TOKEN\`, \`SOCKET\`, \`SLOT\`, \`FENCE\` or \`NAME\`).
- **\`null\` and the empty string** count as absent. \`notes\`, and keys that begin with \`//\` or \`_\`, are comments.
- **Zeros**: a number whose type is \`> 0 or default\` means its default if it is 0 or less, as in the original service. So does \`0 = default\` for 0. One
  warning lists such keys.
- **Mistakes**: the service refuses unknown keys, wrong types and invalid combinations at the start. It reports all of them at once, and
  suggests the key that you probably meant. It logs a warning for a key that is accepted but has no effect, and for an unknown key of the
  controller.
- **Changes without a restart**: on \`SIGHUP\` or \`POST /api/v0/refresh\` the service asks the controller, or reads the file, again. Limits, keys, CORS and
  log level change at once, and sessions survive. A configuration with a mistake changes nothing. A new \`listen\` or \`backend\` needs a restart.

## The service

${table(rows("", { properties: service }))}

## \`fairQueue\`

${table(rows("", { properties: { ...fairQueue?.properties } }))}

### \`fairQueue.hosts\`

Overrides by host name. An override may contain every key from \`minSlotHoldMs\` to \`breaker.*\` above, and \`weights\`, the weight of each
bucket (from ${WEIGHT.min} to ${WEIGHT.max}; 1 if it is not listed). A key that the override does not contain keeps the value above.

- \`*.example.com\` matches \`example.com\` and all its subdomains, and \`*\` alone matches every host. A \`*\` anywhere else is refused, because it
  would never match.
- An exact name wins over a pattern, and a longer pattern over a shorter one.
- An exact name also applies to callers that send only the hash of the name. A pattern applies to a host as soon as one caller has sent the name, and then to all
  its callers.
- No override applies to a caller that sends a name together with a hash that is not the SHA-256 of that name.

\`\`\`json
{ "fairQueue": { "maxSlotPerHost": 5, "hosts": { "*.example.com": { "maxSlotPerHost": 20, "weights": { "203.0.113.0/24": 2 } } } } }
\`\`\`

### \`fairQueue.budgets\`

Budgets limit how much is used over time, for example tokens per minute. A key of \`budgets\` is the name of a budget: 1 to 32 characters of \`a-z\`, \`0-9\`,
\`_\` and \`-\`, and begin with one of a-z; at most 16. The name \`slots\` is refused: the [header RateLimit](http.md#post-apiv0fairqueueacquire)
shows the slots of the host under it. \`budgets\` of a host replace those of \`fairQueue\` as a whole. They do not apply to named semaphores.

| key | meaning |
| --- | --- |
| \`limit\` | units that flow in per \`perSeconds\`; from 0.000001 to 10¹² |
| \`perSeconds\` | time in which \`limit\` units flow in; from 0.001 to 31,536,000 (a year) |
| \`burst\` | most units that the budget holds, and so the largest cost; from 0.000001 to 10¹²; absent: \`limit\` |
| \`default\` | cost of a request that does not name the budget; absent: 1 |
| \`shadow\` | \`true\`: the budget is charged and counted, but no request waits for it or is refused; absent: \`false\` |

In any time T, at most \`burst + limit × T / perSeconds\` units are charged, net of what is given back. For an upstream that counts whole windows, set
\`limit + burst\` to its limit. A grant needs its slots and all its budgets at once. The best-ranked request waits for a budget that cannot pay yet, and no other is
granted meanwhile. Changed limits keep what was spent, and a new budget starts full. At a host with budgets the weighted scheduler is off.

\`order: "budget:NAME"\` gives each bucket an equal share of this budget instead of slot time: the bucket that was charged least per weight is next
([explanation](../explanation/fairness.md#by-a-budget)). A change of \`order\` starts all accounts at zero.

With \`shadow\` you can [try a limit](../guides/shadow.md) in production before you enforce it. The metric \`slotkeeper_shadow_short_total\` counts the grants that would
have waited. A grant that finds the budget short is charged as a debt, of at most one \`limit\`. Without \`shadow\` the budget is then enforced with what was spent so far.
[Direct callers](sql.md) of the database are not counted.

\`\`\`json
{ "fairQueue": { "hosts": { "api.example.com": { "budgets": { "tokens": { "limit": 200000, "perSeconds": 60, "burst": 50000, "default": 1000 } } } } } }
\`\`\`

### \`fairQueue.keys\`

Keys limit what one user or one tenant takes of a host. A key of \`keys\` is the name of a key, with the characters of a budget; at most 4. Requests send a value
for each key, and those with the same value share its slots and budgets. \`keys\` of a host replace those of \`fairQueue\` as a whole. They do not apply to named
semaphores.

| key | meaning |
| --- | --- |
| \`slots\` | most slots of all requests with the same value together; absent: no limit |
| \`budgets\` | budgets of each value, as above |
| \`required\` | \`true\`: a request without the key is refused; absent: \`false\`, and such a request is not limited by it |
| \`shadow\` | \`true\`: the slots are counted, but no request waits for them or is refused, also not without a required key; holds for budgets that do not set \`shadow\` themselves; absent: \`false\` |
| \`for\` | other limits for up to 100 values: \`slots\`, and \`budgets\` by name; what is not named is that of the key |

List the keys from narrow to wide. A request passes its keys in this order, then its bucket, then it competes with all others. For each value, only the oldest
request goes on, as soon as its slots and budgets suffice; the others wait behind it, so that narrow requests cannot starve a wide one. They take no place in the
waiter pool meanwhile. If values do not nest, for example if one user belongs to two tenants, requests of one tenant may hold back those of the other. The same
holds if the oldest request of a tenant waits for its bucket (\`maxSlotPerIp\`): use a key instead of a limit per bucket that is narrower than a key.

The name \`bucket\` stands for the bucket of the request. It takes \`budgets\` only, and the shared bucket is not limited. A cost holds for all budgets of the same
name, of the host and of keys; each has its own \`default\`. What a value has spent is kept until its budgets are full again. If a host keeps 10,000 values, further
values share one state for each key, except those in \`for\`; the metric \`slotkeeper_shared_key_grants_total\` counts their grants. At a host with keys the weighted
scheduler is off. Keys in shadow mode change nothing: they leave it on, and [direct callers](sql.md) may use the host.

\`\`\`json
{ "fairQueue": { "hosts": { "api.example.com": { "maxSlotPerHost": 20, "maxSlotPerIp": -1, "keys": { "user": { "slots": 2 }, "tenant": { "slots": 5, "for": { "acme": { "slots": 10 } } } } } } } }
\`\`\`

### \`fairQueue.classes\`

Classes divide the slots of a host between kinds of work, for example chat and batch. A key of \`classes\` is the name of a class, with the characters of a budget;
at most 16. A request names its class (\`class\` in the first call); one that names none is of the class \`default\`, which exists at every host with classes. An unknown
class is refused. \`classes\` of a host replace those of \`fairQueue\` as a whole. They do not apply to named semaphores.

| key | meaning |
| --- | --- |
| \`weight\` | share of the class compared with other classes, with the bounds of \`weights\`; absent: 1 |
| \`floor\` | slots that are its share at least while slots are short; absent: 0 |
| \`ceiling\` | most slots of all its requests together; absent: no limit |

While several classes wait, each gets slot time in proportion to its weight, at least its \`floor\` and at most its \`ceiling\`. What a class does not use goes to the others. A
\`floor\` reserves nothing: its slots are in use by others until the class asks for them, and then it gets the next ones. Inside a class, \`order\` chooses between the
buckets. \`maxSlotPerIp\` and \`ipCooldownSeconds\` count all classes of a bucket together, and the slots and budgets of a key are shared by all classes. Each class has its own
\`maxWaitersPerHost\` places in the waiter pool, so a full class does not keep out another.

The sum of the floors must be less than the slots. With \`order: "budget:NAME"\` the classes share that budget by weight, and \`floor\` is refused. A change of
\`classes\` without a restart keeps slots and waiters. At a host with classes the weighted scheduler is off.

\`\`\`json
{ "fairQueue": { "hosts": { "api.example.com": { "maxSlotPerHost": 20, "maxSlotPerIp": -1, "classes": { "chat": { "weight": 4, "floor": 4 }, "batch": { "ceiling": 10 } } } } } }
\`\`\`

## Invalid combinations

The service refuses to start with:

- \`auth.enabled\` without \`auth.token\` or \`auth.tokens\`
- a \`backend.mode\` without its address, or a journal with another store than memory
- \`maxHoldSeconds\` below \`zombieTimeoutSeconds\`, also if only an override makes it so
- an \`order\` by a budget that the host does not have, or a budget whose \`default\` is above its \`burst\`
- floors of classes that sum up to the slots or more, or a \`floor\` with an \`order\` by a budget, also if only an override makes it so
- \`shutdown.deadlineMs\` below \`shutdown.graceMs\`
- a key of \`hosts\` that no name can match, or two keys that differ only in upper and lower case
`;
}

function rows(prefix: string, { properties = {} }: Item): string[] {
  return Object.entries(properties).flatMap(([key, item]) => {
    const name = `${prefix}${key}`;
    if (item.aliasOf !== undefined) return [];
    if (item.properties !== undefined) return rows(`${name}.`, item);
    const fallback = item.default === undefined ? "–" : `\`${JSON.stringify(item.default)}\``;
    const secret = item.writeOnly === true ? " (secret)" : "";
    return [
      `| \`${name}\` | ${kind(item)} | ${fallback} | ${(item.description ?? "").replaceAll("|", "\\|")}${secret} |`,
    ];
  });
}

function kind({ type, enum: values, pattern, minimum, exclusiveMinimum, defaultAt }: Item): string {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(" ");
  if (pattern === PATTERNS.order.source) return "`slot-seconds` `fifo` `budget:NAME`";
  if (defaultAt !== undefined) return `${type} ${defaultAt === "zero" ? "0 = default" : "> 0 or default"}`;
  const bound =
    minimum !== undefined ? ` ≥ ${minimum}` : exclusiveMinimum !== undefined ? ` > ${exclusiveMinimum}` : "";
  return `${type === "array" ? "list" : type}${bound}`;
}

function table(lines: readonly string[]): string {
  return ["| key | type | default | meaning |", "|---|---|---|---|", ...lines].join("\n");
}
