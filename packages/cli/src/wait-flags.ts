import type { AcquireOptions, ServiceSlot, SlotClient } from "@slotkeeper/client";
import type { Flags } from "./commands/command.ts";
import type { NAME_OPTIONS, WAIT_OPTIONS } from "./commands/shared-options.ts";

export type WaitFlags = Flags<typeof WAIT_OPTIONS>;

/** Returns all problems at once, or `undefined` if there is none. */
export function waitProblems(flags: WaitFlags): string | undefined {
  const { host, bucket, max, width, cost, key, timeout } = flags;
  return joined([
    host === undefined ? "--host is required." : undefined,
    countProblem("--max", max),
    countProblem("--width", width),
    ...amountProblems("--cost", cost),
    max !== undefined && cost !== undefined
      ? "--max and --cost cannot be combined: a semaphore has no budgets."
      : undefined,
    ...(key ?? []).map(keyProblem),
    max !== undefined && key !== undefined ? "--max and --key cannot be combined." : undefined,
    flags.class === "" ? "Expected --class to be the name of a class." : undefined,
    max !== undefined && flags.class !== undefined ? "--max and --class cannot be combined." : undefined,
    max !== undefined && bucket !== undefined ? "--max and --bucket cannot be combined." : undefined,
    timeoutProblem(timeout),
  ]);
}

/** The same for the flags of `--name`. */
export function nameProblems(flags: WaitFlags & Flags<typeof NAME_OPTIONS>): string | undefined {
  const others = (["host", "max", "bucket", "cost", "key", "class"] as const).filter(
    (flag) => flags[flag] !== undefined,
  );
  return joined([
    ...others.map((flag) => `--name and --${flag} cannot be combined.`),
    countProblem("--slots", flags.slots),
    countProblem("--width", flags.width),
    timeoutProblem(flags.timeout),
  ]);
}

/** One text for all problems, or `undefined` if there is none. */
export function joined(problems: readonly (string | undefined)[]): string | undefined {
  return problems.filter((problem) => problem !== undefined).join("\n") || undefined;
}

/** `name` is the flag or argument as it is typed. */
export function countProblem(name: string, value: string | undefined, least: 0 | 1 = 1): string | undefined {
  const isSound = value === undefined || (/^\d{1,16}$/.test(value) && Number(value) >= least);
  return isSound ? undefined : `Expected ${name} to be a whole number of at least ${least}, got "${value}".`;
}

/** The number of a flag that `countProblem` has checked. */
export function countOf(value: string | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

/** `name` is a flag of amounts of budgets, which may be repeated. */
export function amountProblems(name: string, values: readonly string[] = []): string[] {
  return values
    .filter((value) => !/^[^=]+=\d+(?:\.\d+)?$/.test(value))
    .map((value) => `Expected ${name} to be the name of a budget and a number, like tokens=3000, got "${value}".`);
}

/** The amounts of a flag that `amountProblems` has checked. */
export function amountsOf(values: readonly string[] | undefined): { readonly [budget: string]: number } | undefined {
  return pairsOf(values, Number);
}

function keyProblem(value: string): string | undefined {
  return /^[^=]+=./s.test(value)
    ? undefined
    : `Expected --key to be a name and a value, like tenant=acme, got "${value}".`;
}

/** By name. A value may contain `=`. */
function pairsOf<T>(values: readonly string[] | undefined, read: (text: string) => T) {
  const pairs = values?.map((value) => {
    const at = value.indexOf("=");
    return [value.slice(0, at), read(value.slice(at + 1))] as const;
  });
  return pairs && Object.fromEntries(pairs);
}

function timeoutProblem(timeout: string | undefined): string | undefined {
  if (timeout === undefined || (Number(timeout) > 0 && Number.isFinite(Number(timeout)))) return undefined;
  return `Expected --timeout to be a number of seconds above 0, got "${timeout}".`;
}

type Watched = Pick<AcquireOptions, "signal" | "onPending">;

export function acquireBy(keeper: SlotClient, flags: WaitFlags, watched: Watched): Promise<ServiceSlot> {
  const { host = "", bucket, max } = flags;
  const waitMs = flags.timeout === undefined ? undefined : Number(flags.timeout) * 1000;
  const asked = { bucket, width: countOf(flags.width), ...watched };
  if (max === undefined)
    return keeper.acquire({
      hostname: host,
      maxWaitMs: waitMs,
      cost: amountsOf(flags.cost),
      keys: pairsOf(flags.key, String),
      class: flags.class,
      ...asked,
    });
  return keeper.semaphore(host, Number(max)).acquire({ timeoutMs: waitMs, ...asked });
}
