import type { ServiceHistory, ServiceState } from "@slotkeeper/protocol";
import type { BudgetView, HostSnapshot } from "@slotkeeper/queue";
import { mapInTurns, sortInTurns } from "../../platform/clock.ts";
import { HistoryRing } from "../../telemetry/history-ring.ts";
import { hostRow } from "../../telemetry/live-frame.ts";
import type { FieldProblem } from "../../words/validator.ts";
import type { OperatorContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import { badFields } from "../exchange.ts";
import { operatorsHost } from "../path-host.ts";

type HostState = ServiceState["hosts"][number];

/**
 * The sessions of each host that are shown, in the order of their positions; none if the details of the host are not
 * shown.
 */
interface SessionRange {
  readonly from: number;
  readonly count: number;
}

/** How many hosts are shown in one turn of the event loop. */
const HOSTS_PER_TURN = 50;

/** Combines what this instance and the store know, by host. Details are read only for the hosts of the page. */
export const state: Handler<OperatorContext> = async (exchange, context) => {
  const { queue, instance, log, live, telemetry, presence } = context;
  const query = exchange.query;
  const errors: FieldProblem[] = [];
  const offset = wholeNumber(query, "offset", { least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 }, errors);
  const limit = wholeNumber(query, "limit", { least: 1, most: 1000, fallback: 100 }, errors);
  const sessionRange: SessionRange = {
    from: wholeNumber(query, "from", { least: 0, most: Number.MAX_SAFE_INTEGER, fallback: 0 }, errors),
    count: wholeNumber(query, "sessions", { least: 0, most: 1000, fallback: 200 }, errors),
  };
  const text = query.get("host");
  const only = text === null ? undefined : operatorsHost(exchange, text, context);
  if (only !== undefined && "errors" in only) errors.push(...only.errors);
  if (errors.length > 0) return badFields(exchange, ...errors);
  try {
    const [page, sums, { waiting }] = await Promise.all([
      pageOf(only !== undefined && "host" in only ? only.host : undefined, { offset, limit }, context),
      presence.sums(),
      telemetry.reader.store.totals(),
    ]);
    const { at, counts, unsent } = queue.overview();
    const hosts = await mapInTurns(page.keys, HOSTS_PER_TURN, (key) =>
      JSON.stringify(hostState(key, page.stored.get(key), { at, sessionRange }, context)),
    );
    const rest = {
      at,
      instance,
      configVersion: live.config.version,
      sessions: { ...queue.sessions() },
      counts: { ...counts },
      fleet: { ...sums, waiting },
      unsent,
      total: page.total,
    } satisfies Omit<ServiceState, "hosts">;
    exchange.send(200, "application/json", `${JSON.stringify(rest).slice(0, -1)},"hosts":[${hosts.join(",")}]}`);
  } catch (error) {
    log.warn("the state could not be read", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};

/** The hosts of one page, with their state in the store. */
interface Page {
  readonly total: number;
  readonly keys: readonly string[];
  readonly stored: ReadonlyMap<string, HostSnapshot>;
}

interface PageRange {
  readonly offset: number;
  readonly limit: number;
}

/** One query to the store for a single host; two for all hosts: their keys, then the hosts of the page. */
async function pageOf(only: string | undefined, range: PageRange, context: OperatorContext): Promise<Page> {
  const { queue, telemetry } = context;
  const { offset, limit } = range;
  if (only === undefined) {
    const known = await sortInTurns([...(await telemetry.reader.store.hostKeys()), ...queue.newHostKeys()]);
    const keys = known.slice(offset, offset + limit);
    return { total: known.length, keys, stored: await telemetry.reader.hosts(keys) };
  }
  const stored = await telemetry.reader.hosts([only]);
  const known = stored.size > 0 || queue.glance(only) !== undefined ? [only] : [];
  return { total: known.length, keys: known.slice(offset, offset + limit), stored };
}

function hostState(
  host: string,
  stored: HostSnapshot | undefined,
  { at: now, sessionRange: { from, count } }: { readonly at: number; readonly sessionRange: SessionRange },
  { queue, live }: OperatorContext,
): HostState {
  const looked = count === 0 ? undefined : queue.inspect(host);
  const here = looked ?? queue.glance(host);
  const hostname = here?.hostname ?? stored?.hostname;
  const { openMs } = live.hosts.policyOf(hostname).breaker;
  return {
    ...hostRow(host, here, stored, { now, openMs }),
    limits: live.hosts.limitsOf(hostname, stored),
    ...(stored === undefined ? {} : { progressMs: stored.progress }),
    buckets: [...(stored?.buckets ?? [])],
    ...(stored === undefined || stored.budgets.length === 0 ? {} : { budgets: stored.budgets.map(budgetState) }),
    ...(stored === undefined || stored.classes.length === 0 ? {} : { classes: [...stored.classes] }),
    keys: (stored?.keys ?? []).map(({ slots, budgets, ...key }) => ({
      ...key,
      ...(slots === undefined ? {} : { slots }),
      budgets: budgets.map(budgetState),
    })),
    slots: [...(stored?.leases ?? [])],
    sessions: inOrder(looked?.waiting ?? [])
      .slice(from, from + count)
      .map(({ blockedBy, estimatedWaitMs, cost, class: named, ...session }) => ({
        ...session,
        ...(named === undefined ? {} : { class: named }),
        ...(cost === undefined ? {} : { cost }),
        ...(blockedBy === undefined ? {} : { blockedBy }),
        ...(estimatedWaitMs === undefined ? {} : { estimatedWaitMs }),
      })),
  };
}

function budgetState({ perMs, ...budget }: BudgetView): NonNullable<HostState["budgets"]>[number] {
  return { ...budget, perSeconds: perMs / 1000 };
}

function inOrder<T extends { readonly position: number }>(sessions: readonly T[]): T[] {
  return [...sessions].sort((a, b) => a.position - b.position);
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

/** The last 15 minutes. A host that is not tracked has an empty history, and is tracked from now on. */
export const history: Handler<OperatorContext> = (exchange, context) => {
  const { activity } = context.telemetry;
  const text = exchange.query.get("host");
  const found = text === null ? undefined : operatorsHost(exchange, text, context);
  if (found !== undefined && "errors" in found) return badFields(exchange, ...found.errors);
  const at = context.now();
  const columns = activity.history(found?.host);
  exchange.json({
    at,
    stepMs: activity.stepMs,
    ...(found === undefined ? {} : { host: found.host }),
    isTracked: columns !== undefined,
    ...(columns ?? new HistoryRing(at).read(at)),
  } satisfies ServiceHistory);
};

export const instances: Handler<OperatorContext> = async (exchange, context) => {
  const { presence, log } = context;
  try {
    exchange.json({ at: context.now(), ...(await presence.read()) });
  } catch (error) {
    log.warn("the instances could not be read", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};

export const events: Handler<OperatorContext> = (exchange, { telemetry, instance, version, live }) => {
  const { hub } = telemetry;
  if (hub.isFull) {
    exchange.problem("NOT_READY", "Too many clients listen already, or the service is stopping");
    return;
  }
  // A proxy that buffers would delay the events.
  const stream = exchange.stream("text/event-stream", { "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
  if (stream !== undefined) hub.add(stream, { instance, version, configVersion: live.config.version });
};
