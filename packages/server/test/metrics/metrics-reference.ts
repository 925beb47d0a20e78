import { METRICS, type Metric } from "@slotkeeper/server/internals";

/** `docs/reference/metrics.md`, from the catalogue. */
export function metricsReference(): string {
  const metrics: Metric[] = Object.values(METRICS);
  const rows = metrics.map(
    ({ name, kind, labels, help }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(" ")} | ${help} |`,
  );
  const buckets = metrics.flatMap(({ name, buckets = [] }) =>
    buckets.length === 0
      ? []
      : [
          `### \`${name}\``,
          "",
          "| up to | typical cause |",
          "|---|---|",
          ...buckets.map(([bound, reason]) => `| ${bound} | ${reason} |`),
          "",
        ],
  );
  return `# Metrics

<!-- Made from the catalogue: \`WRITE_DOCUMENTS=1 npx vitest run packages/server/test/metrics\` writes it. -->

Every metric of the service. \`GET /metrics\` returns them in the Prometheus text format, to a
[request with a bearer token](http.md#get-metrics). \`deploy/\` has a scrape job, a Grafana dashboard and alerts.

- **Labels are bounded.** The label \`host\` has the 100 busiest hosts and the value \`other hosts\` for all the rest together, however many hosts
  there are. A host appears by its name, or by its key if no caller sent the name. A host that becomes busy gets its own series within a minute. It
  replaces another host only if it is used half as much again. A grant or a reject counts in exactly one series: that of its host if it has one,
  otherwise \`other hosts\`. So series never fall, and their rates add up.
- **Fleet or instance.** Slots, waiters and breakers come from the store, so every instance reports the same value: use \`max by (host)\`. Sessions
  and all counters belong to the instance: use \`sum\`.
- **If the store does not answer,** the page omits the values that come from the store, and has all others.

| name | kind | labels | meaning |
|---|---|---|---|
${rows.join("\n")}

## OpenTelemetry

If an OpenTelemetry SDK has registered a meter provider in the process before the service starts, the service gives it all these metrics, with the
same names, labels (as attributes) and bounds. Load the SDK first, in a file of yours: \`node --import ./telemetry.mjs node_modules/.bin/slotkeeper serve\`, with
\`@opentelemetry/api\` installed beside \`@slotkeeper/cli\`. Without a provider nothing is recorded. The names are public: a later version may add
metrics, but does not rename them ([versions](versions.md)).

The [client](../guides/client.md#telemetry) has two histograms of its own, with the attributes \`server.address\` (the host) and \`slotkeeper.result\`:

| name | meaning |
|---|---|
| \`slotkeeper_client_wait_seconds\` | Time from an acquire to its result, as the caller sees it |
| \`slotkeeper_client_hold_seconds\` | Time from a grant to its release or loss |

## Buckets of the histograms

Each table lists the upper bounds of the buckets, in seconds or records, and the typical cause of a value in that bucket.

${buckets.join("\n").trimEnd()}
`;
}
