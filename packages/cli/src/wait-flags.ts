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

export interface WaitFlags {
  readonly host?: string | undefined;
  readonly bucket?: string | undefined;
  readonly max?: string | undefined;
  readonly timeout?: string | undefined;
}

/** Returns all problems at once, or `undefined` if there is none. */
export function waitProblems({ host, bucket, max, timeout }: WaitFlags): string | undefined {
  const problems: string[] = [];
  if (host === undefined) problems.push("--host is required.");
  if (max !== undefined && !/^[1-9]\d*$/.test(max))
    problems.push(`Expected --max to be a whole number of at least 1, got "${max}".`);
  if (max !== undefined && bucket !== undefined) problems.push("--max and --bucket cannot be combined.");
  if (timeout !== undefined && !(Number(timeout) > 0 && Number.isFinite(Number(timeout)))) {
    problems.push(`Expected --timeout to be a number of seconds above 0, got "${timeout}".`);
  }
  return problems.length === 0 ? undefined : problems.join("\n");
}

type Watched = Pick<AcquireOptions, "signal" | "onPending">;

export function acquireBy(keeper: SlotClient, flags: WaitFlags, watched: Watched): Promise<ServiceSlot> {
  const { host = "", bucket, max } = flags;
  const waitMs = flags.timeout === undefined ? undefined : Number(flags.timeout) * 1000;
  if (max === undefined) return keeper.acquire({ hostname: host, bucket, maxWaitMs: waitMs, ...watched });
  return keeper.semaphore(host, Number(max)).acquire({ timeoutMs: waitMs, ...watched });
}
