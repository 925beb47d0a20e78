/** The actions at one host that need nothing from its state but, at most, the slot to revoke. */
import { ServiceCallError } from "../call-service.ts";
import { BREAKER, PAUSE, RESUME, REVOKE } from "../commands/operating.ts";
import { running, wrongUsage } from "../read-flags.ts";
import { bucketName, fenceOf, heldText } from "../top/host-cells.ts";
import { harmless } from "../top/terminal-text.ts";
import { countProblem } from "../wait-flags.ts";
import { type Action, act } from "./act.ts";
import { type HostState, hostPath, mustBeKnown, type OperatorFlags, seenHost } from "./call-operator.ts";

const STATES = {
  open: { state: "open", asks: (name: string) => `Open the breaker of ${name}? New and waiting sessions end.` },
  close: { state: "closed", asks: (name: string) => `Close the breaker of ${name}? All requests pass again.` },
} as const;

export const breakerCommand = running(BREAKER, (flags, [host, word]) => {
  const { state, asks } = STATES[word];
  const name = `"${harmless(host)}"`;
  return act(flags, async () => ({
    question: asks(name),
    method: "POST",
    path: hostPath(flags, host, "/breaker"),
    body: { state },
    done: () => ({ text: `The breaker of ${name} is ${state}.`, json: { host, breaker: state } }),
  }));
});

export const pauseCommand = running(PAUSE, (flags, [host]) => setPaused(flags, host, true));
export const resumeCommand = running(RESUME, (flags, [host]) => setPaused(flags, host, false));

function setPaused(flags: OperatorFlags, host: string, paused: boolean): Promise<number> {
  const name = `"${harmless(host)}"`;
  return act(flags, async () => ({
    question: paused ? `Pause ${name}? Nothing new is granted; holders go on.` : `Let ${name} go on?`,
    method: "POST",
    path: hostPath(flags, host, "/pause"),
    body: { paused },
    done: () => ({
      text: paused ? `${name} is paused: nothing new is granted.` : `${name} grants slots again.`,
      json: { host, paused },
    }),
  }));
}

export const revokeCommand = running(REVOKE, async (flags, [host, fence]) => {
  const problem = countProblem("FENCE", fence);
  if (problem !== undefined) return wrongUsage(problem, REVOKE);
  return act(flags, () => revocation(flags, host, fence));
});

async function revocation(flags: OperatorFlags, host: string, fence: string): Promise<Action> {
  const state = mustBeKnown(await seenHost(flags, host), host);
  const slot = state.slots.find((held) => fenceOf(held) === fence);
  if (slot === undefined) throw new ServiceCallError("REFUSED", notHeld(state, host, fence));
  const name = `slot ${fence} of "${harmless(host)}"`;
  return {
    question: `Revoke ${name}, held by ${bucketName(slot.bucket)} for ${heldText(slot)}? Its holder is not notified.`,
    method: "DELETE",
    path: `/slots/${encodeURIComponent(slot.slot)}`,
    done: () => ({
      text: `The ${name} is revoked. The next waiter gets it.`,
      json: { host, fence: Number(fence), bucket: slot.bucket },
    }),
  };
}

function notHeld({ slots }: HostState, host: string, fence: string): string {
  const held = slots.length === 0 ? "none is held" : `held are ${slots.map(fenceOf).join(", ")}`;
  return `No slot of "${harmless(host)}" has the fence ${fence}: ${held}.`;
}
