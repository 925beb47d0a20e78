import { type Signal, signal } from "@preact/signals";
import type { ServiceHistory, ServiceState } from "@slotkeeper/protocol";
import { read } from "../api/call.ts";
import { pause } from "./clock.ts";
import { link } from "./connection.ts";
import { watchHistory } from "./history.ts";

export type HostState = ServiceState["hosts"][number];
export type SlotState = HostState["slots"][number];
export type SessionState = HostState["sessions"][number];
export type BucketState = HostState["buckets"][number];

/** One answer of the service about a host. */
export interface HostView {
  /** `undefined` if the service does not know this host. */
  readonly host: HostState | undefined;
  /** The time of the service, for the ages of its sessions. */
  readonly at: number;
  readonly seenAt: number;
  /** The position of the first session, minus one. */
  readonly from: number;
}

/** The number of sessions that are requested around the visible part of the queue. */
const WINDOW = 200;
const EVERY_MS = 1_000;
/** Large answers are requested less often: reading takes at most a tenth of the time. */
const SHARE = 10;

/** Reads one host repeatedly while its page is open. */
export class HostWatch {
  readonly view: Signal<HostView | undefined> = signal(undefined);
  readonly history: Signal<ServiceHistory | undefined>;
  readonly #key: string;
  readonly #stop = new AbortController();
  readonly #endHistory: () => void;
  #wake = new AbortController();
  #from = 0;

  constructor(key: string) {
    this.#key = key;
    [this.history, this.#endHistory] = watchHistory(key);
    void this.#run();
  }

  close(): void {
    this.#stop.abort();
    this.#wake.abort();
    this.#endHistory();
  }

  /** Called after a change on this page: shows it without waiting for the next read. */
  refresh(): void {
    this.#wake.abort();
  }

  /** Called with the visible part of the queue. Reads other sessions if it is outside the loaded part. */
  show(first: number, last: number): void {
    const { from, host } = this.view.peek() ?? { from: 0, host: undefined };
    const isThere = first >= from && last < from + Math.max(WINDOW, host?.sessions.length ?? 0);
    if (isThere) return;
    this.#from = Math.max(0, Math.round((first + last - WINDOW) / 2));
    this.refresh();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const startedAt = performance.now();
      if (link.peek().phase === "live") await this.#load(signal);
      const tookMs = performance.now() - startedAt;
      await pause(Math.max(EVERY_MS, tookMs * SHARE), this.#wake.signal);
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
    }
  }

  async #load(signal: AbortSignal): Promise<void> {
    const from = this.#from;
    const host = encodeURIComponent(this.#key);
    try {
      const state = await read<ServiceState>(`/state?by=key&host=${host}&sessions=${WINDOW}&from=${from}`, signal);
      this.view.value = { host: state.hosts[0], at: state.at, seenAt: performance.now(), from };
    } catch {
      // The connection shows that the service does not answer. The data on screen stays, marked as old.
    }
  }
}
