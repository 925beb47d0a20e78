import { request } from "node:http";
import { checkFolder, findKeeper, keeperSocket } from "@slotkeeper/client/node/parts";
import type { LocalState } from "./use.ts";

/** Returns the path of the keeper that runs, and starts none; `undefined` if none runs. */
export function runningKeeper(given: string | undefined): Promise<string | undefined> {
  const socket = keeperSocket(given);
  checkFolder(socket);
  return findKeeper(socket);
}

/** Who holds and who waits; `undefined` if no keeper runs. */
export async function localState(given: string | undefined): Promise<LocalState | undefined> {
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
    sent.on("error", ({ code }: NodeJS.ErrnoException) => (code === "ECONNRESET" ? resolve(undefined) : reject(code)));
    sent.end();
  });
}
