import { request } from "node:http";
import type { LocalHolder, LocalName, LocalUser } from "@slotkeeper/server/keeper";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { serviceFailure } from "../service-failure.ts";
import { alignedRows } from "../table.ts";
import { harmless, spanOf } from "../top/terminal-text.ts";
import { runningKeeper } from "./running-keeper.ts";
import { type LocalState, shownBucket } from "./use.ts";

/** `status --local`: who holds what on this machine, who waits, since when. */
export async function statusLocally(socket: string | undefined, isJson: boolean): Promise<ExitCode> {
  try {
    const names = (await localState(socket))?.names ?? [];
    process.stdout.write(isJson ? `${JSON.stringify({ names })}\n` : textOf(names));
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, isJson);
  }
}

/** Who holds and who waits; `undefined` if no keeper runs. */
async function localState(given: string | undefined): Promise<LocalState | undefined> {
  const socketPath = await runningKeeper(given);
  if (socketPath === undefined) return undefined;
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: "/api/v0/local" }, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      answer.on("end", () => resolve(JSON.parse(text) as LocalState));
    });
    // It ended at this moment because it was idle.
    sent.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "ECONNRESET" ? resolve(undefined) : reject(error),
    );
    sent.end();
  });
}

function textOf(names: readonly LocalName[]): string {
  if (names.length === 0) return "No command holds a slot of this machine or waits for one.\n";
  const rows = names.flatMap(({ name, slots, holders, waiters }) => [
    ...holders.map((holder) => [
      nameOf(name),
      `slot ${holder.slot} of ${slots}`,
      ...userCells(holder, keptText(holder)),
    ]),
    ...waiters.map((waiter, at) => [nameOf(name), `waits, ${at + 1} of ${waiters.length}`, ...userCells(waiter, "")]),
  ]);
  return alignedRows([["NAME", "USE", "BY", "FOR", "PROCESS", "COMMAND"], ...rows]);
}

function nameOf(name: string): string {
  return harmless(name.replace(/^sem:/, ""));
}

function userCells({ bucket, forMs, pid, command }: LocalUser, kept: string): string[] {
  return [harmless(shownBucket(bucket)), spanOf(forMs), String(pid), `${harmless(command)}${kept}`];
}

function keptText({ keptBy }: LocalHolder): string {
  if (keptBy === undefined) return "";
  return ` (ended; kept by what it started: ${keptBy.length === 0 ? "unknown" : `process ${keptBy.join(", ")}`})`;
}
