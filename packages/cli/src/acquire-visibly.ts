import type { Pending } from "@slotkeeper/client";
import { spanOf } from "./top/terminal-text.ts";
import { WaitLine } from "./wait-line.ts";
import { type SlotUse, timeoutText, type WaitState, waitingText } from "./wait-words.ts";

/** How often the line on a terminal is renewed. The service reports the place less often. */
const RENEW_MS = 1_000;
/** The same for a log, which gets a line a minute: a hundred commands that wait must not keep the service busy. */
const RENEW_LOG_MS = 5_000;

interface VisibleWait<S> {
  /** The name that is shown. */
  readonly name: string;
  readonly isShown: boolean;
  /** Who uses the slots, if that is known. */
  readonly look: () => Promise<SlotUse | undefined>;
  readonly acquire: (onPending: (pending: Pending) => void) => Promise<S>;
}

/** Waits for a slot and shows on standard error what it waits for. If no slot comes in time, the error says why. */
export async function acquireVisibly<S>({ name, isShown, look, acquire }: VisibleWait<S>): Promise<S> {
  const line = new WaitLine();
  const renewMs = process.stderr.isTTY ? RENEW_MS : RENEW_LOG_MS;
  let pending: Pending | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const show = async () => {
    const use = await look();
    if (isOver) return;
    line.show(waitingText(name, { pending, use }));
    timer = setTimeout(() => void show(), renewMs);
  };
  const onPending = (answer: Pending) => {
    const isFirst = pending === undefined;
    pending = answer;
    if (isFirst && isShown) void show();
  };
  try {
    return await acquire(onPending);
  } catch (error) {
    if ((error as { code?: string }).code !== "ACQUIRE_TIMEOUT") throw error;
    throw explained(error as Timeout, { pending, use: await look() });
  } finally {
    isOver = true;
    clearTimeout(timer);
    line.close();
  }
}

interface Timeout {
  readonly hostname: string;
  readonly waitedMs: number;
}

/** The error of the client, with the reason. */
function explained(error: Timeout, state: WaitState): Error {
  const why = timeoutText(state);
  const message = `Waited ${spanOf(error.waitedMs)} for a slot of "${error.hostname}"${why && `: ${why}`}.`;
  return Object.assign(new Error(message, { cause: error }), { code: "ACQUIRE_TIMEOUT" });
}
