import { spawn } from "node:child_process";
import type { ServiceSlot } from "@slotkeeper/client";
import { systemWords } from "@slotkeeper/server/words";
import { acquireOverService } from "./acquire-over-service.ts";
import type { EXEC } from "./commands/calling.ts";
import type { FlagsOf } from "./commands/command.ts";
import { withoutKeys } from "./environment.ts";
import { CANNOT_START, EXIT, NO_PROGRAM } from "./exit-codes.ts";
import { exitOf, type Signals } from "./signals.ts";

/** Runs the command while a slot of the service is held. Returns its exit code. */
export async function execOverService(
  flags: FlagsOf<typeof EXEC>,
  command: readonly string[],
  signals: Signals,
): Promise<number> {
  const slot = await acquireOverService(flags, signals.waiting);
  const held = { SLOTKEEPER_NAME: flags.host ?? "", SLOTKEEPER_FENCE: String(slot.fence) };
  const environment = { ...withoutKeys(flags["pass-token"] === true), ...held };
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
