import { BREAKER } from "../commands/operating.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readArguments } from "../read-flags.ts";
import { harmless } from "../top/terminal-text.ts";
import { act } from "./act.ts";
import { hostPath } from "./call-operator.ts";

const STATES = {
  open: { state: "open", asks: (name: string) => `Open the breaker of ${name}? New and waiting sessions end.` },
  close: { state: "closed", asks: (name: string) => `Close the breaker of ${name}? All requests pass again.` },
} as const;

export async function breakerCommand(args: readonly string[]): Promise<ExitCode> {
  const read = await readArguments(args, BREAKER);
  if (typeof read === "number") return read;
  const { values: flags, words } = read;
  const [host, word] = words as [string, keyof typeof STATES];
  const { state, asks } = STATES[word];
  const name = `"${harmless(host)}"`;
  return act(flags, async () => ({
    question: asks(name),
    method: "POST",
    path: hostPath(flags, host, "/breaker"),
    body: { state },
    done: () => ({ text: `The breaker of ${name} is ${state}.`, json: { host, breaker: state } }),
  }));
}
