/** The rows of the table: what is measured, for which subjects, and how the figures are shown. */
import { type KillReport, killExecs, killHolders, killKeepers } from "@slotkeeper/testkit/one-machine";
import { crowd, handOver, keeperMegabytes, overtakers, quantile, timeOf } from "./measures.ts";
import { onMachine, SUBJECTS, type Subject, type SubjectId } from "./subjects.ts";

export type Figures = { readonly [name: string]: number };

export interface Row {
  readonly title: string;
  readonly subjects: readonly SubjectId[];
  measure(subject: Subject, scale: Scale): Promise<Figures>;
  text(figures: Figures): string;
  /** Whether the figures break a promise of ours. A peer that breaks it is a result. */
  isViolated(figures: Figures): boolean;
}

interface Scale {
  readonly isShort: boolean;
  /** For ours, in the rows of holders and wrappers. */
  readonly kills: number;
  readonly onProgress: (text: string) => void;
}

const ALL = SUBJECTS.map(({ id }) => id);
const OURS: readonly SubjectId[] = ["slotkeeper"];
const PEER_KILLS = 100;

type Kill = typeof killHolders;

function killRow(title: string, subjects: readonly SubjectId[], kill: Kill, part = 1): Row {
  return {
    title,
    subjects,
    measure: async (subject, { kills, onProgress }) => {
      const count = Math.ceil(subject.id === "slotkeeper" ? kills * part : Math.min(kills, PEER_KILLS));
      return figuresOf(await killed(subject, kill, count, onProgress));
    },
    text: ({ kills = 0, over = 0, lost = 0, p50Ms, p99Ms }) =>
      `${kills} kills, ${over} starts beyond the slots${lost > 0 ? `, ${lost} lost` : ""}; ${delayText(p50Ms, p99Ms)}`,
    isViolated: ({ over = 0, lost = 0 }) => over + lost > 0,
  };
}

/** Without a delay, the quantiles are NaN, and `null` in the file of the results. */
function delayText(p50Ms: unknown, p99Ms: unknown): string {
  if (typeof p50Ms !== "number" || typeof p99Ms !== "number" || Number.isNaN(p50Ms)) return "no start came in turn";
  return `next start after ${ms(p50Ms)}, p99 ${ms(p99Ms)}`;
}

/** A peer that takes ten seconds for each kill works on several machines at once. */
async function killed(
  { id, prepare, machinesAtOnce = 1 }: Subject,
  kill: Kill,
  count: number,
  onProgress: (text: string) => void,
): Promise<KillReport[]> {
  let done = 0;
  const onKill = () => onProgress(`${++done} of ${count} kills`);
  const parts = Array.from({ length: machinesAtOnce }, async (_, at) => {
    const { wrapper, close } = prepare();
    const options = { kills: Math.ceil(count / machinesAtOnce), seed: at + 1, wrapper, onKill };
    try {
      return await kill(id === "slotkeeper" ? { ...options, after: noFiles } : { ...options, slots: 1 });
    } catch (error) {
      throw new Error(`after ${done} kills, ${(error as Error).message}`, { cause: error });
    } finally {
      close();
    }
  });
  return Promise.all(parts);
}

/** The keeper ends when it has been idle, and leaves nothing. */
const noFiles: NonNullable<Parameters<Kill>[0]["after"]> = async (machine) => {
  await machine.until(() => (machine.files().length === 0 ? true : undefined), "the end of the keeper without files");
};

function figuresOf(reports: readonly KillReport[]): Figures {
  const delays = reports.flatMap(({ delaysMs }) => delaysMs);
  const sum = (of: "kills" | "over" | "lost") => reports.reduce((total, report) => total + report[of], 0);
  const [p50Ms, p99Ms] = [quantile(delays, 0.5), quantile(delays, 0.99)];
  return { kills: sum("kills"), over: sum("over"), lost: sum("lost"), p50Ms, p99Ms };
}

function crowdRow(count: number): Row {
  return {
    title: `${count} commands at the same instant, no keeper`,
    subjects: OURS,
    measure: (subject) =>
      onMachine(subject, async (machine) => ({
        ...(await crowd(machine, count)),
        keeperMb: await keeperMegabytes(machine),
      })),
    text: ({ ran = 0, keepers = 0, most = 0, keeperMb = 0 }) =>
      `${ran} ran, at most ${most} at once, ${keepers} keeper with ${keeperMb.toFixed(0)} MB`,
    isViolated: ({ ran, keepers, most }) => ran !== count || keepers !== 1 || most !== 1,
  };
}

const GROUPS: Row = {
  title: "one command of another group, behind 100",
  subjects: ALL,
  measure: async (subject, { isShort }) => ({
    before: await onMachine(subject, (machine) => overtakers(machine, isShort ? 20 : 100)),
  }),
  text: ({ before = 0 }) => `${before} start before it`,
  isViolated: ({ before = 0 }) => before > 1,
};

const HANDOVER: Row = {
  title: "end of a command to the start of the next, all queued",
  subjects: ALL,
  measure: async (subject, { isShort }) => {
    const gaps = await onMachine(subject, (machine) => handOver(machine, isShort ? 15 : 50));
    return { p50Ms: quantile(gaps, 0.5), p99Ms: quantile(gaps, 0.99) };
  },
  text: ({ p50Ms = 0, p99Ms = 0 }) => `${ms(p50Ms)}, p99 ${ms(p99Ms)}`,
  isViolated: () => false,
};

const START: Row = {
  title: "start and end around `true`, in addition to Node's own",
  subjects: ALL,
  measure: async (subject, { isShort }) =>
    onMachine(subject, async (machine) => {
      const line = machine.lineOf(["true"]);
      timeOf(line);
      // The two take turns, so that the load of the machine meets both.
      const turns = Array.from({ length: isShort ? 10 : 40 }, () => [
        timeOf([process.execPath, "-e", "0"]),
        timeOf(line),
      ]);
      const nodeMs = quantile(
        turns.map(([node = 0]) => node),
        0.5,
      );
      const allMs = quantile(
        turns.map(([, all = 0]) => all),
        0.5,
      );
      return { nodeMs, allMs };
    }),
  text: ({ nodeMs = 0, allMs = 0 }) =>
    `${ms(allMs)} (Node ${ms(nodeMs)}; ${allMs < nodeMs ? "−" : "+"}${ms(Math.abs(allMs - nodeMs))})`,
  isViolated: () => false,
};

function ms(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

/** In the order of the table. */
export const ROWS: { readonly [id: string]: Row } = {
  holders: killRow("`kill -9` of a holder with all its processes", ALL, killHolders),
  execs: killRow("`kill -9` of the wrapper only, the command runs on", ALL, killExecs),
  keepers: killRow("`kill -9` of the keeper", OURS, killKeepers, 0.3),
  crowd: crowdRow(50),
  crowd200: crowdRow(200),
  groups: GROUPS,
  handover: HANDOVER,
  start: START,
};
