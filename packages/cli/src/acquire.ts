import { fstatSync, statSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import type { ServiceSlot } from "@slotkeeper/client";
import { acquireOverService } from "./acquire-over-service.ts";
import { ACQUIRE } from "./commands/calling.ts";
import { EXIT } from "./exit-codes.ts";
import { running, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { exitOf, Signals } from "./signals.ts";
import { waitProblems } from "./wait-flags.ts";

export const acquireCommand = running(ACQUIRE, async (flags) => {
  const isJson = flags.json === true;
  const problems = waitProblems(flags);
  if (problems !== undefined) return wrongUsage(problems, ACQUIRE);
  const signals = new Signals();
  try {
    if (isOutputDiscarded()) throw noOutput(`it is closed or ${devNull}`);
    await print(await acquireOverService(flags, signals.waiting), isJson);
    return EXIT.ok;
  } catch (error) {
    return signals.received === undefined ? serviceFailure(error, isJson) : exitOf(signals.received);
  } finally {
    signals.close();
  }
});

/** Prints the token. If that fails, releases the slot, because no caller can. */
async function print(slot: ServiceSlot, isJson: boolean): Promise<void> {
  const { token: slotToken, fence, expiresAt, charged } = slot;
  try {
    // `process.stdout` would report the failure later, and to a listener that takes a reader who left for a success.
    writeFileSync(OUTPUT, `${isJson ? JSON.stringify({ slotToken, fence, expiresAt, charged }) : slotToken}\n`);
  } catch (error) {
    await slot.release();
    throw noOutput(`${(error as Error).message}; the slot was released`);
  }
}

/** The file descriptor of standard output. */
const OUTPUT = 1;

/** Node opens the null device in place of an output that is closed. */
function isOutputDiscarded(): boolean {
  return fstatSync(OUTPUT).rdev === statSync(devNull).rdev;
}

function noOutput(why: string): Error {
  const message = `The token of the slot cannot be written to standard output: ${why}.`;
  return Object.assign(new Error(message), { code: "NO_OUTPUT" });
}
