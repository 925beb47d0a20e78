import { AcquireTimeoutError, type Pending, type ServiceSlot, type SlotClient } from "@slotkeeper/client";
import { callService, ServiceCallError } from "./call-service.ts";
import { operatorHeaders } from "./service-flags.ts";
import { spanOf } from "./top/terminal-text.ts";
import { acquireBy, type WaitFlags } from "./wait-flags.ts";
import { WaitLine } from "./wait-line.ts";
import { type SlotUse, timeoutText, type WaitState, waitingText } from "./wait-words.ts";

type Flags = WaitFlags & {
  readonly url?: string | undefined;
  readonly "internal-token"?: string | undefined;
  readonly quiet?: boolean | undefined;
  readonly json?: boolean | undefined;
};

/** A wait that timed out, with the reason. It has the `code` of the client's error. */
class TimedOut extends Error {
  readonly code = "ACQUIRE_TIMEOUT";
}

/** How long the service may take to show who holds the slots. The wait does not depend on it. */
const LOOK_MS = 2_000;
/** How often the line on a terminal is renewed. The service reports the place less often. */
const RENEW_MS = 1_000;

/** Waits for a slot and shows on standard error what it waits for. If no slot comes in time, the error says why. */
export async function acquireVisibly(keeper: SlotClient, flags: Flags, signal: AbortSignal): Promise<ServiceSlot> {
  const { host = "", max } = flags;
  const watch = new UseWatch(flags, max === undefined ? host : `sem:${host}`);
  const line = new WaitLine();
  const isShown = flags.quiet !== true && flags.json !== true;
  let pending: Pending | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const show = async () => {
    const use = await watch.look();
    if (isOver) return;
    line.show(waitingText(host, { pending, use }));
    timer = setTimeout(() => void show(), RENEW_MS);
  };
  const onPending = (answer: Pending) => {
    const isFirst = pending === undefined;
    pending = answer;
    if (isFirst && isShown) void show();
  };
  try {
    return await acquireBy(keeper, flags, { signal, onPending });
  } catch (error) {
    if (!(error instanceof AcquireTimeoutError)) throw error;
    throw explained(error, { pending, use: await watch.look() });
  } finally {
    isOver = true;
    clearTimeout(timer);
    line.close();
  }
}

function explained(error: AcquireTimeoutError, state: WaitState): Error {
  const why = timeoutText(state);
  return new TimedOut(`Waited ${spanOf(error.waitedMs)} for a slot of "${error.hostname}"${why && `: ${why}`}.`, {
    cause: error,
  });
}

/** The part of the state that is shown. */
interface State {
  readonly hosts: readonly {
    readonly inFlight: number;
    readonly limit?: number;
    readonly slots: readonly { readonly bucket: string; readonly heldMs?: number }[];
  }[];
}

/** Reads who uses the slots. Only operators may, so a caller without the internal token often gets no answer. */
class UseWatch {
  readonly #flags: Flags;
  readonly #name: string;
  #isRefused = false;

  constructor(flags: Flags, name: string) {
    this.#flags = flags;
    this.#name = name;
  }

  async look(): Promise<SlotUse | undefined> {
    if (this.#isRefused) return undefined;
    const { url, "internal-token": token } = this.#flags;
    try {
      const init = { headers: operatorHeaders(token), signal: AbortSignal.timeout(LOOK_MS) };
      const path = `/api/v0/state?by=name&sessions=0&host=${encodeURIComponent(this.#name)}`;
      const { hosts } = (await callService(url, path, init)) as State;
      return useOf(hosts[0]);
    } catch (error) {
      this.#isRefused = error instanceof ServiceCallError && error.code === "REFUSED";
      return undefined;
    }
  }
}

function useOf(host: State["hosts"][number] | undefined): SlotUse | undefined {
  if (host === undefined || !host.limit) return undefined;
  const holders = host.slots
    .map(({ bucket, heldMs }) => ({ bucket, heldMs }))
    .sort((a, b) => (b.heldMs ?? 0) - (a.heldMs ?? 0));
  return { inUse: host.inFlight, slots: host.limit, holders };
}
