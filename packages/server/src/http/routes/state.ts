import type { ServiceState } from "@slotkeeper/protocol";
import type { HostDump, HostSnapshot } from "@slotkeeper/queue";
import type { FieldProblem } from "../../validation/field-problem.ts";
import type { Handler } from "../handler.ts";

type HostState = ServiceState["hosts"][number];

const SESSIONS_SHOWN = 200;

/** What this instance and the store know, laid together by host. */
export const state: Handler = async (exchange, { queue, opened, instance, log }) => {
  const query = new URL(exchange.request.url ?? "/", "http://service").searchParams;
  const errors: FieldProblem[] = [];
  const offset = wholeNumber(query, "offset", { least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 }, errors);
  const limit = wholeNumber(query, "limit", { least: 1, most: 1000, fallback: 100 }, errors);
  if (errors.length > 0) return exchange.problem("BAD_FIELDS", undefined, { errors });
  try {
    const { hosts: stored } = await opened.store.snapshot();
    const { hosts: known, at, sessions, counts, unsent } = queue.dump();
    const [byKey, storedByKey] = [mapOf(known), mapOf(stored)];
    const keys = [...new Set([...storedByKey.keys(), ...byKey.keys()])].sort();
    const hosts = keys.slice(offset, offset + limit).map((key) => hostState(key, byKey.get(key), storedByKey.get(key)));
    exchange.json({
      at,
      instance,
      sessions,
      counts: { ...counts },
      unsent,
      total: keys.length,
      hosts,
    } satisfies ServiceState);
  } catch (error) {
    log.warn("state failed", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};

function mapOf<T extends { readonly host: string }>(items: readonly T[]): Map<string, T> {
  return new Map(items.map((item) => [item.host, item]));
}

function hostState(host: string, here: HostDump | undefined, stored: HostSnapshot | undefined): HostState {
  return {
    host,
    ...(here?.hostname === undefined ? {} : { hostname: here.hostname }),
    ...(stored === undefined ? {} : { limit: stored.slots }),
    inFlight: stored?.inFlight ?? 0,
    pending: here?.pending ?? 0,
    avgWaitMs: here?.avgWaitMs ?? 0,
    breaker: stored?.breaker.phase ?? here?.breaker ?? "closed",
    buckets: (stored?.buckets ?? []).map(({ bucket, weight, inFlight, waiting, usedMs }) => ({
      bucket,
      weight,
      inFlight,
      waiting,
      usedMs,
    })),
    slots: [...(stored?.leases ?? [])],
    sessions: (here?.waiting ?? []).slice(0, SESSIONS_SHOWN).map(({ session, bucket, place, arrivedAt, polls }) => ({
      session,
      bucket,
      place,
      arrivedAt,
      polls,
    })),
  };
}

function wholeNumber(
  query: URLSearchParams,
  field: string,
  { least, most, fallback }: { least: number; most: number; fallback: number },
  errors: FieldProblem[],
): number {
  const text = query.get(field);
  if (text === null) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  errors.push({
    field,
    message: `Expected \`${field}\` to be a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`,
  });
  return fallback;
}
