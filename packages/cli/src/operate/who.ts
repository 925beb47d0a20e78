import { waitCause } from "@slotkeeper/server/words";
import { WHO } from "../commands/operating.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { readArguments } from "../read-flags.ts";
import { serviceFailure } from "../service-failure.ts";
import { alignedRows } from "../table.ts";
import {
  BUDGET_HEADINGS,
  bucketName,
  budgetCells,
  CLASS_HEADINGS,
  classCells,
  fenceOf,
  hostSummary,
  KEY_HEADINGS,
  KEYS_SHOWN,
  keyCells,
  sessionCells,
  slotCells,
} from "../top/host-cells.ts";
import { harmless, spanOf } from "../top/terminal-text.ts";
import { nameOf, waitingAt } from "../top/top-model.ts";
import { type HostState, mustBeKnown, seenHost } from "./call-operator.ts";

/** How many waiters are listed; the number of all is shown. */
const MOST_WAITERS = 200;

export async function whoCommand(args: readonly string[]): Promise<ExitCode> {
  const read = await readArguments(args, WHO);
  if (typeof read === "number") return read;
  const { values: flags, words } = read;
  const isJson = flags.json === true;
  try {
    const name = words[0] as string;
    const seen = await seenHost(flags, name, MOST_WAITERS);
    const host = mustBeKnown(seen, name);
    process.stdout.write(isJson ? `${JSON.stringify({ at: seen.at, ...host })}\n` : textOf(host, seen.at));
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, isJson);
  }
}

function textOf(host: HostState, at: number): string {
  const head = `${harmless(nameOf(host))}: ${hostSummary(host)}\n`;
  const blocks = [head, budgets(host), classes(host), keys(host), holders(host), waiters(host, at), firstOf(host)];
  return blocks.filter((block) => block !== "").join("\n");
}

function budgets({ budgets: all = [] }: HostState): string {
  return all.length === 0 ? "" : alignedRows([BUDGET_HEADINGS, ...all.map(budgetCells)]);
}

function classes({ classes: all = [], limit }: HostState): string {
  return all.length === 0 ? "" : alignedRows([CLASS_HEADINGS, ...all.map((one) => classCells(one, limit))]);
}

function keys({ keys: all }: HostState): string {
  return all.length === 0 ? "" : alignedRows([KEY_HEADINGS, ...all.slice(0, KEYS_SHOWN).map(keyCells)]);
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
