/**
 * `npm run bench:local -- [--short] [--kills N] [--ours] [--only holders,execs,keepers,crowd,groups,handover,start]`
 *
 * Slots on one machine, beside the usual ways, in one run. Commands write when they start and end into a log, and only
 * that log is judged. More commands at once than slots is an error: the process ends with 1.
 */
import { parseArgs } from "node:util";
import { type KillReport, killExecs, killHolders, killKeepers } from "@slotkeeper/testkit/one-machine";
import { crowd, handOver, keeperMegabytes, overtakers, quantile, timeOf } from "./measures.ts";
import { onMachine, SUBJECTS, type Subject } from "./subjects.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    kills: { type: "string" },
    // Without the others in the rows of kills.
    ours: { type: "boolean", default: false },
    only: { type: "string" },
  },
});
const kills = Number(values.kills ?? (values.short ? 50 : 1000));
const only = values.only?.split(",");
let isViolated = false;

function line(row: string, subject: string, text: string): void {
  process.stdout.write(`${row.padEnd(34)} ${subject.padEnd(16)} ${text}\n`);
}

function killText(report: KillReport): string {
  const { delaysMs } = report;
  const [p50, p99] = [quantile(delaysMs, 0.5), quantile(delaysMs, 0.99)].map((ms) => ms.toFixed(1));
  return `${report.kills} kills: more than N ${report.over}, lost ${report.lost}; next start after p50 ${p50} ms, p99 ${p99} ms`;
}

/** A peer that fails is a result. Ours may not. */
async function row(name: string, subject: Subject, measure: () => Promise<string>): Promise<void> {
  try {
    line(name, subject.id, await measure());
  } catch (error) {
    if (subject.id === "slotkeeper") throw error;
    line(name, subject.id, `failed: ${(error as Error).message}`);
  }
}

type Kill = typeof killHolders;

async function killRow(name: string, subject: Subject, kill: Kill, count: number): Promise<void> {
  const { wrapper, close } = subject.prepare();
  let left = "";
  const isOurs = subject.id === "slotkeeper";
  const after: NonNullable<Parameters<Kill>[0]["after"]> = async (machine) => {
    await machine.until(() => (machine.files().length === 0 ? true : undefined), "the end of the keeper");
    left = "; files left 0";
  };
  await row(name, subject, async () => {
    const slots = isOurs ? {} : { slots: 1 };
    const report = await kill({ kills: count, seed: 1, ...slots, wrapper, ...(isOurs ? { after } : {}) });
    isViolated ||= isOurs && (report.over > 0 || report.lost > 0);
    return killText(report) + left;
  });
  close();
}

/** Peers get fewer kills: some need ten seconds for each. */
async function killRows(name: string, kill: Kill): Promise<void> {
  for (const subject of values.ours ? SUBJECTS.slice(0, 1) : SUBJECTS) {
    await killRow(name, subject, kill, subject.id === "slotkeeper" ? kills : Math.ceil(kills / 20));
  }
}

const ROWS: { readonly [name: string]: () => Promise<void> } = {
  holders: () => killRows("kill -9 of a holder's group", killHolders),
  execs: () => killRows("kill -9 of the wrapper only", killExecs),
  keepers: async () => {
    const [ours] = SUBJECTS;
    if (ours !== undefined) await killRow("kill -9 of the keeper", ours, killKeepers, Math.ceil(kills * 0.3));
  },
  crowd: async () => {
    const [ours] = SUBJECTS;
    if (ours === undefined) return;
    const text = await onMachine(ours, async (machine) => {
      const { ran, keepers, most } = await crowd(machine, 50);
      isViolated ||= ran !== 50 || most > 1;
      return `${ran} ran, ${keepers} keeper, at most ${most} at once; keeper ${(await keeperMegabytes(machine)).toFixed(1)} MiB`;
    });
    line("50 commands at the same instant", ours.id, text);
  },
  groups: async () => {
    const size = values.short ? 20 : 100;
    for (const subject of SUBJECTS) {
      const measure = async () => `${await onMachine(subject, (machine) => overtakers(machine, size))} start before it`;
      await row(`one command behind ${size} others`, subject, measure);
    }
  },
  handover: async () => {
    for (const subject of SUBJECTS) {
      await row("hand-over, all queued", subject, async () => {
        const gaps = await onMachine(subject, (machine) => handOver(machine, values.short ? 15 : 50));
        return `p50 ${quantile(gaps, 0.5).toFixed(1)} ms, p99 ${quantile(gaps, 0.99).toFixed(1)} ms`;
      });
    }
  },
  start: startRow,
};

/** The subjects take turns, so that the load of the machine meets all of them. */
async function startRow(): Promise<void> {
  const rounds = values.short ? 10 : 40;
  const times = new Map<string, number[]>([["node alone", []]]);
  await onMachine(SUBJECTS[0] as Subject, async (machine) => {
    const peers = SUBJECTS.slice(1).map((subject) => ({ subject, ...subject.prepare() }));
    timeOf(machine.exec([], ["true"]));
    for (let round = 0; round < rounds; round++) {
      times.get("node alone")?.push(timeOf([process.execPath, "-e", "0"]));
      times.set("slotkeeper", [...(times.get("slotkeeper") ?? []), timeOf(machine.exec([], ["true"]))]);
      for (const { subject, wrapper } of peers) {
        const taken = timeOf(wrapper?.(["true"], "one") ?? []);
        times.set(subject.id, [...(times.get(subject.id) ?? []), taken]);
      }
    }
    for (const { close } of peers) close();
  });
  for (const [subject, taken] of times) {
    line(
      "start-up around `true`",
      subject,
      `p50 ${quantile(taken, 0.5).toFixed(1)} ms, least ${Math.min(...taken).toFixed(1)} ms`,
    );
  }
}

for (const [name, run] of Object.entries(ROWS)) if (only?.includes(name) !== false) await run();
process.exitCode = isViolated ? 1 : 0;
