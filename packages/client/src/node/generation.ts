/**
 * Which process is the keeper of a socket. Node has no lock of the operating system, so processes claim numbers.
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
export function generationsOf(socket: string): number[] {
  const prefix = `${basename(socket)}.`;
  return readdirSync(dirname(socket))
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((rest) => /^\d+$/.test(rest))
    .map(Number);
}
