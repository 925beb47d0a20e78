import { type Bounds, COUNT_NAMES } from "./counts.ts";
import type { Verdict } from "./judge-history.ts";

const SHOWN = 5;
const SHOWN_LINES = 8;

/** The verdict for people. `textOf` gives the text of a line of the history, to show those concerned. */
export function formatVerdict(verdict: Verdict, textOf?: (line: number) => string | undefined): string {
  const { calls, sessions, grants, unknown, counts, rules, violations } = verdict;
  const lines = [`${calls} calls, ${sessions} sessions, ${grants} slots`];
  if (unknown > 0) lines.push(`${unknown} calls continue sessions that began before the history; they are not judged`);
  lines.push(
    `the service must have counted: ${COUNT_NAMES.map((name) => `${name} ${formatBounds(counts[name])}`).join(", ")}`,
  );
  for (const { rule, title, judged, violations: count, unjudged } of rules) {
    const outcome = count > 0 ? `${count} VIOLATIONS` : judged > 0 ? `ok, ${judged} judged` : "not judged";
    lines.push(`  ${rule}  ${title}: ${outcome}`, ...unjudged.map((reason) => `         not judged: ${reason}`));
    for (const violation of violations.filter((one) => one.rule === rule).slice(0, SHOWN)) {
      lines.push(`         at ${violation.at.toFixed(0)} ms, ${violation.host}: ${violation.detail}`);
      const shown = violation.lines.slice(0, SHOWN_LINES);
      const more = violation.lines.length - shown.length;
      if (textOf === undefined)
        lines.push(`           lines ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`);
      else lines.push(...shown.map((line) => `           ${line}: ${textOf(line) ?? ""}`));
    }
    if (count > SHOWN) lines.push(`         and ${count - SHOWN} more`);
  }
  lines.push(violations.length === 0 ? "passed" : `failed: ${violations.length} violations`);
  return lines.join("\n");
}

export function formatBounds({ least, most }: Bounds): string {
  if (least === most) return `${least}`;
  return most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`;
}
