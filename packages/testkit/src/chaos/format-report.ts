import { formatBounds } from "../history/format-verdict.ts";
import type { ComparedCounts } from "./instance-counts.ts";
import type { ChaosReport } from "./report.ts";

const SHOWN_VIOLATIONS = 10;
const COLUMNS = [
  "fault",
  "count",
  "recovery p50 s",
  "max s",
  "slow",
  "other hosts max ms",
  "failed calls",
  "violations",
];

/** The verdict for people. */
export function formatReport(report: ChaosReport): string {
  const rows = report.faults.map((fault) => [
    fault.name,
    `${fault.count}`,
    seconds(fault.recoveryP50Ms),
    seconds(fault.recoveryMaxMs),
    `${fault.slow}`,
    fault.stallMaxMs === undefined ? "–" : fault.stallMaxMs.toFixed(0),
    `${fault.failedCalls}`,
    `${fault.violations}`,
  ]);
  const widths = COLUMNS.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  ");
  return [
    "",
    line(COLUMNS),
    ...rows.map(line),
    ...report.skipped.map(({ name, reason }) => `${name}: skipped, ${reason}`),
    "",
    `${report.seconds.toFixed(0)} s, seed ${report.seed}, load average ${report.loadAverage.toFixed(1)}, utilisation before the faults ${report.baselineUtilisation.toFixed(2)}`,
    `${report.grants} grants of ${report.sessions} sessions; ${report.failedCalls} of ${report.calls} calls failed; ${report.blockedByStore} sessions got the answer that the store was away`,
    `${report.faults.reduce((sum, { count }) => sum + count, 0)} faults of ${report.faults.length} kinds, each at least ${report.fewest} times`,
    `judged by each rule: ${report.judged.map(({ rule, judged }) => `${rule} ${judged}`).join(", ")}`,
    ...formatCounts(report.counts),
    ...report.violations
      .slice(0, SHOWN_VIOLATIONS)
      .map(({ rule, host, detail }) => `VIOLATION ${rule} at ${host}: ${detail}`),
    ...report.misses.map((miss) => `MISSED ${miss}`),
    report.misses.length === 0 ? "passed" : "failed",
    "",
  ].join("\n");
}

/** What the clients saw, and what the instances counted. */
function formatCounts({ counts, ended }: ComparedCounts): string[] {
  const texts = counts.map(({ name, counted, isAllowed, ...bounds }) => {
    return `${name} ${formatBounds(bounds)} / ${counted}${isAllowed ? "" : " DIFFERS"}`;
  });
  return [
    `counts from the history / of the instances, without the last ones of ${ended} that ended: ${texts.join(", ")}`,
  ];
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
