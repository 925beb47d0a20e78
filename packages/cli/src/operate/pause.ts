import { PAUSE, RESUME } from "../commands/operating.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readArguments } from "../read-flags.ts";
import { harmless } from "../top/terminal-text.ts";
import { act } from "./act.ts";
import { hostPath } from "./call-operator.ts";

export function pauseCommand(args: readonly string[]): Promise<ExitCode> {
  return setPaused(args, true);
}

export function resumeCommand(args: readonly string[]): Promise<ExitCode> {
  return setPaused(args, false);
}

async function setPaused(args: readonly string[], paused: boolean): Promise<ExitCode> {
  const read = await readArguments(args, paused ? PAUSE : RESUME);
  if (typeof read === "number") return read;
  const { values: flags, words } = read;
  const host = words[0] as string;
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
