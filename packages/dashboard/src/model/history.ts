import { type Signal, signal } from "@preact/signals";
import type { ServiceHistory } from "@slotkeeper/protocol";
import { read } from "../api/call.ts";
import { duration } from "../format.ts";
import { whileLive } from "./connection.ts";

const EVERY_MS = 5_000;

/** The last 15 minutes of all hosts, or of one, read again with every step. Call the second value to stop. */
export function watchHistory(host?: string): [Signal<ServiceHistory | undefined>, () => void] {
  const history = signal<ServiceHistory | undefined>(undefined);
  const query = host === undefined ? "" : `?by=key&host=${encodeURIComponent(host)}`;
  const load = async (signal: AbortSignal) => {
    // The connection shows the failure. The last data stays until the next read succeeds.
    history.value = await read<ServiceHistory>(`/history${query}`, signal).then(fromStart, () => history.peek());
  };
  return [history, whileLive(EVERY_MS, (signal) => void load(signal))];
}

/** Two points make a line. */
const LEAST_STEPS = 2;

/** Leaves out the steps from before the service kept this history, so that its charts begin where its data begins. */
function fromStart(history: ServiceHistory): ServiceHistory {
  const steps = Math.max(LEAST_STEPS, history.known);
  const columns = Object.entries(history).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.slice(-steps) : value,
  ]);
  return Object.fromEntries(columns) as ServiceHistory;
}

const RATE_MS = 15_000;

/** The rate per second over the last 15 seconds, from complete steps. */
export function ratePerSecond(counts: readonly number[], stepMs: number): number {
  const steps = Math.max(1, Math.round(RATE_MS / stepMs));
  const lately = counts.slice(-1 - steps, -1);
  return lately.reduce((sum, count) => sum + count, 0) / ((lately.length * stepMs) / 1000);
}

/** `15 min`, or less soon after the start of the service. */
export function lengthOf({ granted, stepMs }: ServiceHistory): string {
  return duration(granted.length * stepMs);
}

export function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The newest value of the last minute. */
export function latest(values: readonly (number | null)[], stepMs: number): number | undefined {
  const recent = values.slice(-Math.ceil(60_000 / stepMs));
  return recent.findLast((value) => value !== null) ?? undefined;
}
