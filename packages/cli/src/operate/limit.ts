import type { FlagsOf } from "../commands/command.ts";
import { LIMIT } from "../commands/operating.ts";
import { running, wrongUsage } from "../read-flags.ts";
import { harmless } from "../top/terminal-text.ts";
import { countProblem, joined } from "../wait-flags.ts";
import { type Action, act } from "./act.ts";
import { type HostState, hostPath, seenHost } from "./call-operator.ts";

type LimitKey = keyof HostState["limits"];
type Limits = { readonly [key in LimitKey]?: number };

export const limitCommand = running(LIMIT, async (flags, [host]) => {
  const problems = problemsOf(flags);
  if (problems !== undefined) return wrongUsage(problems, LIMIT);
  return act(flags, () => change(flags, host));
});

function problemsOf(flags: FlagsOf<typeof LIMIT>): string | undefined {
  const { slots, "per-bucket": perBucket, reset } = flags;
  if (slots === undefined && perBucket === undefined && reset !== true) {
    return "Expected --slots, --per-bucket or --reset.";
  }
  return joined([countProblem("--slots", slots), countProblem("--per-bucket", perBucket, 0)]);
}

/**
 * The service takes all live limits of a host at once, so those that an operator has set before are sent again. A change
 * of another limit by another operator, between the reading and the call, is lost.
 */
async function change(flags: FlagsOf<typeof LIMIT>, host: string): Promise<Action> {
  const { state: before } = await seenHost(flags, host);
  const { slots, "per-bucket": perBucket } = flags;
  const body: Limits = {
    ...(flags.reset !== true && liveLimits(before)),
    ...(slots !== undefined && { maxSlotPerHost: Number(slots) }),
    ...(perBucket !== undefined && { maxSlotPerIp: Number(perBucket) }),
  };
  const name = `"${harmless(host)}"`;
  const present = before === undefined ? "" : ` It has ${limitsText(before)}.`;
  return {
    question: `Set the limits of ${name} to ${wantedText(body)}?${present}`,
    method: "POST",
    path: hostPath(flags, host),
    body,
    done: async () => {
      const { state: after } = await seenHost(flags, host);
      return {
        text: `${name} has ${after === undefined ? wantedText(body) : limitsText(after)}.`,
        json: { host, limits: after?.limits ?? body },
      };
    },
  };
}

function liveLimits(state: HostState | undefined): Limits {
  const set = Object.entries(state?.limits ?? {}).filter(([, { origin }]) => origin === "live");
  return Object.fromEntries(set.map(([key, { value }]) => [key, value]));
}

/** `20 slots (live), 1 per bucket (default)`. */
function limitsText({ limits: { maxSlotPerHost: slots, maxSlotPerIp: perBucket } }: HostState): string {
  return `${slots.value} slots (${slots.origin}), ${perBucketText(perBucket.value)} (${perBucket.origin})`;
}

function wantedText({ maxSlotPerHost, maxSlotPerIp }: Limits): string {
  const slots = maxSlotPerHost === undefined ? "the configured number of slots" : `${maxSlotPerHost} slots`;
  return `${slots}, ${maxSlotPerIp === undefined ? "the configured number per bucket" : perBucketText(maxSlotPerIp)}`;
}

function perBucketText(value: number): string {
  return value === 0 ? "no limit per bucket" : `${value} per bucket`;
}
