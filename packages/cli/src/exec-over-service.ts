import { spawn } from "node:child_process";
import type { ServiceSlot } from "@slotkeeper/client";
import { systemWords } from "@slotkeeper/server/words";
import { acquireOverService } from "./acquire-over-service.ts";
import { commandEnvironment } from "./command-environment.ts";
import { CANNOT_START, EXIT, NO_PROGRAM } from "./exit-codes.ts";
import type { ServiceFlags } from "./service-flags.ts";
import { exitOf, type Signals } from "./signals.ts";
import type { WaitFlags } from "./wait-flags.ts";

type Flags = WaitFlags & ServiceFlags & { readonly "pass-token"?: boolean | undefined };

/** Runs the command while a slot of the service is held. Returns its exit code. */
export async function execOverService(flags: Flags, command: readonly string[], signals: Signals): Promise<number> {
  const slot = await acquireOverService(flags, signals.waiting);
  const environment = commandEnvironment({ name: flags.host ?? "", fence: slot.fence }, flags["pass-token"] === true);
  try {
    return await ended(slot, command, environment, signals);
  } finally {
    await slot.release();
  }
}

function ended(
  slot: ServiceSlot,
  [file = "", ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  signals: Signals,
): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: "inherit", env });
    signals.child = child;
    const onLost = () => {
      process.stderr.write(`${(slot.signal.reason as Error).message} The command gets SIGTERM.\n`);
      child.kill("SIGTERM");
    };
    slot.signal.addEventListener("abort", onLost);
    child.on("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" || error.code === "EACCES" ? NO_PROGRAM : systemWords(error);
      process.stderr.write(`Cannot start the command ${JSON.stringify(file)}: ${why}.\n`);
      resolve(CANNOT_START);
    });
    child.on("exit", (code, signal) =>
      resolve(slot.signal.aborted ? EXIT.lost : (code ?? exitOf(signal ?? "SIGTERM"))),
    );
  });
}
