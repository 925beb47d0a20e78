import { METRICS, type Metric } from "@slotkeeper/server/live";

/** `docs/reference/metrics.md`, from the catalogue. */
export function metricsReference(): string {
  const metrics: Metric[] = Object.values(METRICS);
  const rows = metrics.map(
    ({ name, kind, labels = [], help }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(" ")} | ${help} |`,
  );
  const buckets = metrics.flatMap(({ name, buckets = [] }) =>
    buckets.length === 0
      ? []
      : [
          `### \`${name}\``,
          "",
          "| up to | why |",
          "|---|---|",
          ...buckets.map(([bound, reason]) => `| ${bound} | ${reason} |`),
          "",
        ],
  );
  return `# Metrics

<!-- Made from the catalogue: \`WRITE_DOCUMENTS=1 npx vitest run packages/server/test/metrics\` writes it anew. -->

\`GET /metrics\`, in the Prometheus text format; with \`internalApiToken\` set it needs that as a bearer. Names, kinds, words and buckets
are in one file, \`packages/server/src/metrics/catalogue.ts\`. A dashboard and alerts that use them are in \`deploy/\`.

- **Labels are bounded.** \`host\` has the 100 busiest hosts by name (by key, where no caller named them) and \`other hosts\` for all the
  rest together, with 100,000 hosts as with 100. A host that becomes busy enters within a minute; one that was shown gives way only to one
  used half as much again. A grant or a reject counts in one series: at its host while that is shown, else at the others. So series only
  grow, and their rates add up.
- **Fleet or instance.** Slots, waiters and breakers are the store's, and every instance says the same: take \`max by (host)\`. Sessions
  and all counters are the instance's own: take \`sum\`.
- A store that does not answer leaves its own numbers out; the rest of the page is there.

| name | kind | labels | |
|---|---|---|---|
${rows.join("\n")}

## Buckets, each with its reason

${buckets.join("\n").trimEnd()}
`;
}
