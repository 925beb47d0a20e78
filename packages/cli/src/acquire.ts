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
    const { token: slotToken, fence, expiresAt, charged } = await acquireOverService(flags, signals.waiting);
    process.stdout.write(`${isJson ? JSON.stringify({ slotToken, fence, expiresAt, charged }) : slotToken}\n`);
    return EXIT.ok;
  } catch (error) {
    return signals.received === undefined ? serviceFailure(error, isJson) : exitOf(signals.received);
  } finally {
    signals.close();
  }
});
