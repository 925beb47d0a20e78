/**
 * Runs a command while a slot of this machine is held.
 *
 * LOCAL1  The process of the command exists before the slot is asked for, and the keeper knows its id. So the slot lasts
 *     until the command has ended, and all that it started and that kept the descriptor, even if `exec` is killed.
 * LOCAL2  The command starts only after the grant is written to a file and the keeper knows that this process took it,
 *     and never if `exec` dies before. So a process that is stopped while it waits takes no slot.
 */
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  checkFolder,
  Holder,
  type KeeperCommand,
  KeeperLink,
  keeperSocket,
  NODE_OPTIONS,
} from "@slotkeeper/client/node/parts";
import type { EXEC } from "../commands/calling.ts";
import type { FlagsOf } from "../commands/command.ts";
import { withoutKeys } from "../environment.ts";
import type { Signals } from "../signals.ts";
import { countOf } from "../wait-flags.ts";
import { descriptorsOf, freeNumber, HELD_VARIABLE, heldSlots, isUnder } from "./held.ts";
import { Hold } from "./hold.ts";
import { KeeperRefusal, type LocalGrant, LocalSession } from "./wait.ts";
import { WaitingCommand } from "./waiting-command.ts";

export async function execLocally(
  flags: FlagsOf<typeof EXEC>,
  command: readonly string[],
  signals: Signals,
): Promise<number> {
  const { name = "" } = flags;
  const socket = keeperSocket(flags.socket);
  const held = heldSlots();
  const descriptors = descriptorsOf(held);
  const env = withoutKeys(flags["pass-token"] === true);
  const link = new KeeperLink(socket, keeperCommand);
  checkFolder(socket);
  if (await isUnder(held, { link, name, signal: signals.waiting })) {
    if (flags.nested !== true) throw new TypeError(nestedText(name));
    return runNested(new WaitingCommand(command, env, descriptors), signals);
  }
  const holder = new Holder(socket);
  const descriptor = flags.close === true ? undefined : freeNumber(descriptors);
  if (descriptor !== undefined) descriptors.set(descriptor, holder.descriptor);
  const waiting = new WaitingCommand(command, env, descriptors);
  if (flags.close !== true) holder.handOver();
  const headers = holder.header({ pid: waiting.pid, command: command.join(" ") });
  const hold = new Hold(link, headers, () => waiting.kill("SIGTERM"));
  let isStarted = false;
  try {
    const grant = await granted(link, flags, { headers, hold, signal: signals.waiting });
    // A signal that came after the grant must not start the command.
    signals.waiting.throwIfAborted();
    signals.child = waiting;
    isStarted = true;
    waiting.start({
      SLOTKEEPER_NAME: name,
      SLOTKEEPER_SLOT: String(grant.slot),
      SLOTKEEPER_FENCE: String(grant.fence),
      [HELD_VARIABLE]: JSON.stringify([...held, { holder: holder.path, descriptor }]),
    });
    return hold.ended(await waiting.exited);
  } finally {
    hold.close();
    waiting.abandon();
    // What the command left behind may still hold the slot, and the next keeper needs the file of its socket.
    if (!isStarted || flags.close === true) holder.close();
  }
}

function nestedText(name: string): string {
  return `This command already runs under a slot of "${name}", and would wait for itself. To run under that slot, use --nested.`;
}

function runNested(nested: WaitingCommand, signals: Signals): Promise<number> {
  signals.child = nested;
  nested.start({});
  return nested.exited;
}

/** Starts the keeper of the same version. The path is the same from `src` and from `dist`. */
function keeperCommand(): KeeperCommand {
  return [process.execPath, ...NODE_OPTIONS, fileURLToPath(new URL("../../bin/slotkeeper.mjs", import.meta.url))];
}

const LONGEST_BUCKET = 255;

/** Who shares fairly if `--as` is missing: the repository of the working directory, else the user. */
function defaultBucket(): string {
  try {
    for (let folder = process.cwd(); ; folder = dirname(folder)) {
      // A worktree has a file of this name.
      if (existsSync(join(folder, ".git"))) return folder.slice(-LONGEST_BUCKET);
      if (folder === dirname(folder)) return userInfo().username;
    }
  } catch {
    // The working directory was removed, or the user has no name, as in many containers.
    return `user ${process.getuid?.()}`;
  }
}

async function granted(
  link: KeeperLink,
  flags: FlagsOf<typeof EXEC>,
  { headers, hold, signal }: { headers: { readonly [name: string]: string }; hold: Hold; signal: AbortSignal },
): Promise<LocalGrant> {
  const { name = "", slots, timeout } = flags;
  const session = new LocalSession(link, {
    hostname: `sem:${name}`,
    bucket: flags.as ?? defaultBucket(),
    slots: countOf(slots),
    width: countOf(flags.width),
    timeoutMs: timeout === undefined ? undefined : Number(timeout) * 1000,
    headers,
    signal,
    confirm: (slotToken) => hold.confirm(slotToken, signal),
  });
  try {
    return (await session.ask().catch(unlessTimedOut)) ?? (await waitVisibly(link, flags, session));
  } catch (error) {
    if (!(error instanceof KeeperRefusal)) throw error;
    const { capacityText, lookAt, usageText } = await import("./use.ts");
    if (USAGE_PROBLEMS.has(error.problem)) throw new TypeError(usageText(name, error.message), { cause: error });
    if (error.problem !== "CAPACITY_MISMATCH") throw error;
    throw new KeeperRefusal(capacityText(name, Number(slots), await lookAt(link, name)), error.problem);
  }
}

/** The problems of flags that only the keeper can check. */
const USAGE_PROBLEMS: ReadonlySet<string | undefined> = new Set(["BAD_FIELDS", "IMPOSSIBLE"]);

/** The next call fails for the same reason, and then the message says who holds the slot. */
function unlessTimedOut(error: unknown): undefined {
  if ((error as { code?: string }).code !== "ACQUIRE_TIMEOUT") throw error;
}

/** Waits. What shows the wait is loaded only for it, because most commands do not wait, and delays no grant. */
function waitVisibly(link: KeeperLink, flags: FlagsOf<typeof EXEC>, session: LocalSession): Promise<LocalGrant> {
  const grant = session.wait();
  const shown = show(link, flags, session, grant);
  // The error of what shows it says why no slot came in time.
  return Promise.race([shown, grant.catch(() => shown)]);
}

async function show(
  link: KeeperLink,
  { name = "", quiet, json }: FlagsOf<typeof EXEC>,
  session: LocalSession,
  grant: Promise<LocalGrant>,
): Promise<LocalGrant> {
  const [{ acquireVisibly }, { lookAt }] = await Promise.all([import("../acquire-visibly.ts"), import("./use.ts")]);
  return acquireVisibly({
    name,
    isShown: quiet !== true && json !== true,
    look: () => lookAt(link, name),
    acquire: (onPending) => {
      session.onPending(onPending);
      return grant;
    },
  });
}
