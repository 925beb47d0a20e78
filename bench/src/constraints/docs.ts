/** The part of `docs/reference/benchmarks.md` about constraints. */
import { CONSTRAINTS_TITLE, tableRow } from "../page.ts";
import { figureTable } from "../service/docs.ts";
import { summaryLine } from "../table.ts";
import { LEASE_MS, LIMITS, TENANTS } from "./job.ts";
import { casesOf, notesOf, type Report } from "./report.ts";

export function renderConstraintsPart(report: Report): string {
  if (report.isShort || report.s1 === undefined || Object.keys(report.skipped).length > 0)
    throw new RangeError("Expected all rows and full mode for --write-docs.");
  const goals = casesOf(report).flatMap(({ id, verdicts }) =>
    verdicts.map(({ text, measured, outcome }) => tableRow([id, text, measured, outcome])),
  );
  return [
    CONSTRAINTS_TITLE,
    "",
    "Written by `npm run bench:constraints -- --write-docs`; do not edit.",
    "",
    `Node ${report.node}, commit ${report.commit}. In this run: ${summaryLine({ cases: casesOf(report) })}.`,
    "",
    tableRow(["row", "goal", "measured", "verdict"]),
    "|---|---|---|---|",
    ...goals,
    "",
    ...s1Section(report),
    ...peersSection(report),
  ].join("\n");
}

function s1Section({ s1, rounds, old }: Report): string[] {
  if (s1 === undefined) return [];
  return [
    `### ${s1.id}`,
    "",
    `${s1.title}. Medians of ${rounds} rounds with their spread, subjects in turns, as in the rows above. *again* is plain S1 once`,
    "more: its difference from the first column is the noise of the machine. *constrained* has the constraints of the title at",
    "its host, and sends them in every request." + (old === undefined ? "" : ` *old* is plain S1 on commit ${old}.`),
    "",
    ...figureTable(s1),
    "",
  ];
}

function peersSection(report: Report): string[] {
  const { user, tenant, total, tokensPerSecond, burst } = LIMITS;
  return [
    "### Beside limiters on Redis",
    "",
    `Three processes ask for the same ${TENANTS.length} tenants. The limits span the processes: ${user} request of a user at a time, ${tenant} of a tenant,`,
    `${total} in all, ${tokensPerSecond} tokens per second with a burst of ${burst}. A request really costs half to one and a half of its estimate, and runs`,
    "for 150 to 450 ms. Every tenant always has work; one has four times as many users, and three send requests that are four times as",
    `large. Every five seconds a process is killed with SIGKILL and started again; its slots end after ${LEASE_MS / 1000} s where the limiter has such a`,
    "time. A recorder outside the processes sees each start and end. *Slots over* is the most that ran at once, above the limit.",
    "*Tokens over* is the most that any interval cost above burst + rate × its length; *without under-estimates* counts a request",
    "with at most its estimate, because no limiter can know more before the work has ended. Both allow 50 ms for the way of a report.",
    "*Utilisation* is the true cost per second ÷",
    `${tokensPerSecond}. *Jain* is 1 if all tenants get the same. *Slots leaked* is how many of the ${total} slots a fresh process cannot take, after all three were killed and their time has passed.`,
    "",
    ...figureTable({ samples: report.peers }),
    "",
    "How to read it: a limit holds across processes and kills only if its row is 0. A utilisation above 1 was paid for with tokens over",
    "the budget. With a Jain of cost near 1, more users or larger requests give a tenant no larger share. The notes say which limits a",
    "subject does not have, and what stands in for them.",
    "",
    ...notesOf(report).map((note) => `- ${note}`),
    "",
  ];
}
