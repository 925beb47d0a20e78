/**
 * Which process is the keeper of a socket. Node has no lock of the operating system, so processes claim numbers: a keeper
 * listens as `SOCKET.1`, and the next one as `SOCKET.2`.
 *
 * GEN1  At most one process serves. Each listens under a name of its own, claims a number by a hard link, which fails
 *     if another has it, and looks at all the others after that. It serves only if none of them answers. Of two that
 *     claim at the same time, the later one sees the earlier one.
 * GEN2  One of several that start together serves: the one with the lowest number waits until the others have left.
 * GEN3  A killed process leaves files, but its socket refuses connections, so it prevents no other from serving.
 */
import { linkSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { basename, dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const LOOK_MS = 5;
/** A later process that has not left by then serves, because it looked before this one claimed. */
const GIVE_UP_MS = 2_000;

/** Returns the path that was claimed for the socket `own`, or `undefined` if another process serves. */
export async function claimGeneration(socket: string, own: string): Promise<string | undefined> {
  const number = claimNext(socket, own);
  const path = `${socket}.${number}`;
  for (const untilAt = Date.now() + GIVE_UP_MS; Date.now() < untilAt; await pause(LOOK_MS)) {
    const others = await living(socket, number);
    if (others.length === 0) return path;
    if (others.some((other) => other < number)) break;
  }
  rmSync(path, { force: true });
  return undefined;
}

/** The path of a keeper that is alive, or `undefined`. */
export async function findKeeper(socket: string): Promise<string | undefined> {
  for (const path of candidates(socket)) if (await isListening(path)) return path;
  return undefined;
}

/** The path that a keeper has most probably, without a look whether it is alive. */
export function likelyKeeper(socket: string): string | undefined {
  return candidates(socket)[0];
}

/** The newest first. */
function candidates(socket: string): string[] {
  return generationsOf(socket)
    .sort((a, b) => b - a)
    .map((number) => `${socket}.${number}`);
}

/** Whether a process listens there. */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(path);
    connection.on("connect", () => {
      connection.destroy();
      resolve(true);
    });
    // A full queue of connections belongs to a process that is alive.
    connection.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "EAGAIN"));
  });
}

function claimNext(socket: string, own: string): number {
  for (;;) {
    const number = Math.max(0, ...generationsOf(socket)) + 1;
    try {
      linkSync(own, `${socket}.${number}`);
      return number;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

async function living(socket: string, own: number): Promise<number[]> {
  const others = generationsOf(socket).filter((number) => number !== own);
  const answers = await Promise.all(others.map((number) => isListening(`${socket}.${number}`)));
  return others.filter((_, at) => answers[at]);
}

/** The numbers that are claimed, by processes that live or not. */
function generationsOf(socket: string): number[] {
  const prefix = `${basename(socket)}.`;
  return readdirSync(dirname(socket))
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((rest) => /^\d+$/.test(rest))
    .map(Number);
}
