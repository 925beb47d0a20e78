import { ConfigSchema } from "@slotkeeper/protocol/schemas";

interface Item {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly writeOnly?: boolean;
  readonly properties?: Record<string, Item>;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
}

/** `docs/reference/config.md`, from the schema. */
export function configReference(): string {
  const { $schema: _editor, fairQueue, ...service } = (ConfigSchema as Item).properties ?? {};
  return `# Configuration

<!-- Made from the schema: \`WRITE_DOCUMENTS=1 npx vitest run packages/server/test/documents.test.ts\` writes it anew. -->

\`slotkeeper serve -c config.json\` reads a JSON file. Without one the embedded default runs: memory store, \`127.0.0.1:8080\`.
Editors complete and check the file with \`"$schema": "./node_modules/@slotkeeper/protocol/schema/config.schema.json"\`.

- **Precedence**, key by key: flags, then environment, then the [controller](../guides/control-plane.md), then file, then defaults.
  \`slotkeeper serve --print-config\` shows every value with its origin; secrets are not shown.
- **Environment**: the key's path in upper snake case, \`__\` between levels: \`fairQueue.maxWaitMs\` is
  \`SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS\`. Lists are comma-separated or JSON; \`fairQueue.hosts\` is JSON. An empty variable is absent;
  an unknown one is refused. What a cluster sets by itself (\`SLOTKEEPER_PORT=tcp://…\`, \`SLOTKEEPER_SERVICE_…\`) is ignored.
- **\`null\` and the empty string are absent.** \`notes\` and keys that begin with \`//\` or \`_\` are remarks.
- Unknown keys, wrong types and invalid combinations are refused at start: all problems at once, with a suggestion where a
  known key is near. What is accepted without effect is a warning in the log.
- **Live**: \`SIGHUP\` or \`POST /api/v0/refresh\` asks the controller, or reads the file, again. Limits, keys, CORS and log level change at once and sessions survive;
  a file with a problem changes nothing. \`listen\` and \`backend\` take a restart.

## The service

${table(rows("", { properties: service }))}

## \`fairQueue\`

${table(rows("", { properties: { ...fairQueue?.properties } }))}

### \`fairQueue.hosts\`

Overrides by host name: every key from \`minSlotHoldMs\` to \`breaker\` above, and \`weights\`. What an override does not name keeps the
value above. An exact name beats any pattern, a longer pattern a shorter one; \`*.example.com\` matches \`example.com\` too, and \`*\` alone
matches every host. Any other place for a \`*\` is refused: it would never match. Exact names also hold for callers that send the hash
alone; patterns need the name. A name sent beside a hash of the caller's own making selects no override.

\`\`\`json
{ "fairQueue": { "maxSlotPerHost": 5, "hosts": { "*.example.com": { "maxSlotPerHost": 20, "weights": { "203.0.113.0/24": 2 } } } } }
\`\`\`

## Invalid combinations

- \`auth.enabled\` without a key; \`controller.url\` without \`controller.apiToken\`; a \`backend.mode\` without its address; a journal with another store than memory
- \`maxHoldSeconds\` below \`zombieTimeoutSeconds\`, also where an override makes it so
- \`shutdown.deadlineMs\` below \`shutdown.graceMs\`
- \`weightedScheduler.hotAvgWaitMs\` not above \`coldAvgWaitMs\`
- a key of \`hosts\` that no name can match, or two that differ only in case
`;
}

function rows(prefix: string, { properties = {} }: Item): string[] {
  return Object.entries(properties).flatMap(([key, item]) => {
    const name = `${prefix}${key}`;
    if (item.properties !== undefined) return rows(`${name}.`, item);
    const fallback = item.default === undefined ? "–" : `\`${JSON.stringify(item.default)}\``;
    const secret = item.writeOnly === true ? " (secret)" : "";
    return [
      `| \`${name}\` | ${kind(item)} | ${fallback} | ${(item.description ?? "").replaceAll("|", "\\|")}${secret} |`,
    ];
  });
}

function kind({ type, enum: values, minimum, exclusiveMinimum }: Item): string {
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(" ");
  const bound =
    minimum !== undefined ? ` ≥ ${minimum}` : exclusiveMinimum !== undefined ? ` > ${exclusiveMinimum}` : "";
  return `${type === "array" ? "list" : type}${bound}`;
}

function table(lines: readonly string[]): string {
  return ["| key | type | default | meaning |", "|---|---|---|---|", ...lines].join("\n");
}
