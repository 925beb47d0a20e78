import { ServiceCallError } from "../call-service.ts";
import { REVOKE } from "../commands/operating.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readArguments, wrongUsage } from "../read-flags.ts";
import { bucketName, fenceOf, heldText } from "../top/host-cells.ts";
import { harmless } from "../top/terminal-text.ts";
import { countProblem } from "../wait-flags.ts";
import { type Action, act } from "./act.ts";
import { type HostState, mustBeKnown, type OperatorFlags, seenHost } from "./call-operator.ts";

export async function revokeCommand(args: readonly string[]): Promise<ExitCode> {
  const read = await readArguments(args, REVOKE);
  if (typeof read === "number") return read;
  const { values: flags, words } = read;
  const [host, fence] = words as [string, string];
  const problem = countProblem("FENCE", fence);
  if (problem !== undefined) return wrongUsage(problem, REVOKE);
  return act(flags, () => revocation(flags, host, fence));
}

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
