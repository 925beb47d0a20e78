import type { AcquireOptions, ServiceSlot, SlotClient } from "@slotkeeper/client";

/** The flags for the host, the bucket, the number of slots and the longest wait. */
export const WAIT_OPTIONS = {
  host: { type: "string" },
  bucket: { type: "string" },
  max: { type: "string" },
  timeout: { type: "string" },
  quiet: { type: "boolean" },
  "internal-token": { type: "string" },
} as const;

export const WAIT_HELP = `      --host NAME     the upstream host; with --max: the name of a semaphore
      --bucket NAME   group of clients: all groups get equal shares of slot time; not with --max
      --max N         use a semaphore with N slots, independent of the configuration; all its users must give the same N
      --timeout S     longest wait in seconds; default 20, with --max no limit
      --quiet         do not show on standard error what it waits for
      --internal-token KEY
                      internalApiToken of the service, or SLOTKEEPER_INTERNAL_TOKEN: to show who holds the slots meanwhile`;

/** The flags of `exec` for a semaphore by its name, of this machine or of a service. */
export const NAME_OPTIONS = {
  name: { type: "string" },
  slots: { type: "string" },
  as: { type: "string" },
  socket: { type: "string" },
  close: { type: "boolean" },
  nested: { type: "boolean" },
} as const;

export const NAME_HELP = `      --name NAME     what is shared, for example gpu or build
      --slots N       how many may run at a time; default: as the first user of the name has set it, else 1
      --as GROUP      who shares: all groups get equal shares of slot time; default: the repository, else the user
      --socket PATH   the socket of the keeper of this machine; default: SLOTKEEPER_SOCKET, else one in /tmp
      --close         end the slot with the command, although processes that it started still run
      --nested        under a command that holds a slot of this name: run under that slot`;

export interface WaitFlags {
  readonly host?: string | undefined;
  readonly bucket?: string | undefined;
  readonly max?: string | undefined;
  readonly timeout?: string | undefined;
}

/** Returns all problems at once, or `undefined` if there is none. */
export function waitProblems({ host, bucket, max, timeout }: WaitFlags): string | undefined {
  return joined([
    host === undefined ? "--host is required." : undefined,
    countProblem("max", max),
    max !== undefined && bucket !== undefined ? "--max and --bucket cannot be combined." : undefined,
    timeoutProblem(timeout),
  ]);
}

/** The same for the flags of `--name`. */
export function nameProblems(flags: WaitFlags & { readonly slots?: string | undefined }): string | undefined {
  const others = (["host", "max", "bucket"] as const).filter((flag) => flags[flag] !== undefined);
  return joined([
    ...others.map((flag) => `--name and --${flag} cannot be combined.`),
    countProblem("slots", flags.slots),
    timeoutProblem(flags.timeout),
  ]);
}

function joined(problems: readonly (string | undefined)[]): string | undefined {
  return problems.filter((problem) => problem !== undefined).join("\n") || undefined;
}

function countProblem(flag: string, value: string | undefined): string | undefined {
  if (value === undefined || /^[1-9]\d*$/.test(value)) return undefined;
  return `Expected --${flag} to be a whole number of at least 1, got "${value}".`;
}

function timeoutProblem(timeout: string | undefined): string | undefined {
  if (timeout === undefined || (Number(timeout) > 0 && Number.isFinite(Number(timeout)))) return undefined;
  return `Expected --timeout to be a number of seconds above 0, got "${timeout}".`;
}

type Watched = Pick<AcquireOptions, "signal" | "onPending">;

export function acquireBy(keeper: SlotClient, flags: WaitFlags, watched: Watched): Promise<ServiceSlot> {
  const { host = "", bucket, max } = flags;
  const waitMs = flags.timeout === undefined ? undefined : Number(flags.timeout) * 1000;
  if (max === undefined) return keeper.acquire({ hostname: host, bucket, maxWaitMs: waitMs, ...watched });
  return keeper.semaphore(host, Number(max)).acquire({ timeoutMs: waitMs, bucket, ...watched });
}
