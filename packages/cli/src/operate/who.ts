import { waitCause } from "@slotkeeper/server/words";
import { WHO } from "../commands/operating.ts";
import { EXIT } from "../exit-codes.ts";
import { running } from "../read-flags.ts";
import { serviceFailure } from "../service-failure.ts";
import { alignedRows } from "../table.ts";
import { bucketName, fenceOf, hostSummary, sessionCells, slotCells, tablesOf } from "../top/host-cells.ts";
import { harmless, spanOf } from "../top/terminal-text.ts";
import { nameOf, waitingAt } from "../top/top-model.ts";
import { type HostState, mustBeKnown, seenHost } from "./call-operator.ts";

/** How many waiters are listed; the number of all is shown. */
const MOST_WAITERS = 200;

export const whoCommand = running(WHO, async (flags, [name]) => {
  const isJson = flags.json === true;
  try {
    const seen = await seenHost(flags, name, MOST_WAITERS);
    const host = mustBeKnown(seen, name);
    process.stdout.write(isJson ? `${JSON.stringify({ at: seen.at, ...host })}\n` : textOf(host, seen.at));
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, isJson);
  }
});

function textOf(host: HostState, at: number): string {
  const head = `${harmless(nameOf(host))}: ${hostSummary(host)}\n`;
  const blocks = [head, ...tablesOf(host).map(alignedRows), holders(host), waiters(host, at), firstOf(host)];
  return blocks.filter((block) => block !== "").join("\n");
}

function holders({ slots }: HostState): string {
  if (slots.length === 0) return "";
  const rows = slots.map((slot) => [fenceOf(slot), ...slotCells(slot)]);
  return alignedRows([["FENCE", "HELD BY", "HELD FOR", "LEASE LEFT"], ...rows]);
}

function waiters(host: HostState, at: number): string {
  const { sessions } = host;
  if (sessions.length === 0) return "";
  const table = alignedRows([
    ["POSITION", "WAITING", "FOR", "FORECAST", "WHY"],
    ...sessions.map((session) => sessionCells(session, at)),
  ]);
  const hidden = waitingAt(host) - sessions.length;
  return hidden > 0 ? `${table}… and ${hidden} more\n` : table;
}

/** An instance knows what its own sessions wait for; the store knows how many wait in the fleet. */
function firstOf(host: HostState): string {
  const [first] = host.sessions;
  if (first === undefined || first.position !== 1) {
    return waitingAt(host) === 0 ? "" : "The first one waits at another instance: ask that one with --url.\n";
  }
  const shown = { bucket: bucketName(first.bucket), breakerLeft: spanOf(host.breakerEndsInMs ?? 0) };
  const { cause, more } = waitCause(first, host, shown);
  return `Why the first one waits: ${cause} ${more}\n`;
}
