import type { ReleaseCall, ReleaseReply } from "@slotkeeper/protocol";
import { CancelSchema, ReleaseSchema, RenewSchema, ReportSchema } from "@slotkeeper/protocol/schemas";
import type { ReleaseAccepted } from "@slotkeeper/queue";
import { NO_HOST, namedHost } from "../../queue/names.ts";
import { type FieldProblem, fieldName, validator } from "../../words/validator.ts";
import type { CallerContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import { badFields, type Exchange, fieldsOf, type JsonObject } from "../exchange.ts";
import { withinPatience } from "../store-patience.ts";

const releaseCall = validator(ReleaseSchema);
const renewCall = validator(RenewSchema);
const cancelCall = validator(CancelSchema);
const reportCall = validator(ReportSchema);

const NO_PROBLEMS: readonly FieldProblem[] = [];

/** How long an answer that does not depend on the store still waits for it. A commit takes a few milliseconds. */
const MOMENT_MS = 100;

/** Sends the release to the store in the background, even if this connection breaks. The token names the host. */
export const release: Handler<CallerContext> = async (exchange, { queue, traces }, body) => {
  const checked = releaseCall.check(body);
  const problems = "problems" in checked ? checked.problems : NO_PROBLEMS;
  const errors = problems.filter(({ field }) => field === "slotToken");
  if (errors.length > 0) return badFields(exchange, ...errors);
  // A slot that is not released costs more than an invalid field. The engine ignores the invalid amounts in `used`.
  const bad = problems.map(({ field }) => field);
  const call = (bad.length === 0 ? body : without(body, bad)) as ReleaseCall;
  const { slotToken, hitUpstreamAtMs, status, used, now } = call;
  // Before the release, because that may answer the next waiter.
  traces?.holds(exchange, slotToken, 0);
  // While another instance is alive, this one must not die between the answer and the commit: a caller without an answer
  // repeats the call there.
  const accepted = await aMoment<ReleaseAccepted>((onAccepted) =>
    queue.release({ slotToken, hitUpstreamAtMs, callerNow: now, status, used }, onAccepted),
  );
  const ignored = ignoredOf(bad, accepted);
  exchange.json({
    result: "ok",
    ...(accepted?.isHeld === false ? { released: false } : {}),
    ...(ignored.length > 0 ? { ignored } : {}),
  } satisfies ReleaseReply);
};

/** What `done` is called with; `undefined` if it is not called within `MOMENT_MS`. */
function aMoment<T>(start: (done: (value: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDone = false;
    start((value) => {
      isDone = true;
      clearTimeout(timer);
      resolve(value);
    });
    if (!isDone) timer = setTimeout(() => resolve(undefined), MOMENT_MS);
  });
}

function without(body: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !fields.includes(key)));
}

/** The amounts in `used` that were invalid, or that the engine ignored. */
function ignoredOf(bad: readonly string[], accepted: ReleaseAccepted | undefined): string[] {
  const ignored = accepted?.ignored ?? [];
  if (bad.length === 0 && ignored.length === 0) return [];
  const invalid = bad.filter((field) => /^used\b/.test(field));
  return [...new Set([...invalid, ...ignored.map((name) => fieldName(["used", name]))])];
}

export const renew: Handler<CallerContext> = async (exchange, { queue, log, traces }, body) => {
  const fields = fieldsOf(exchange, body, renewCall);
  if (fields === undefined) return;
  try {
    const reply = await withinPatience(queue.renew(fields.slotToken));
    traces?.holds(exchange, fields.slotToken, reply?.leaseMs ?? 0);
    if (reply === undefined) exchange.problem("SLOT_LOST");
    else exchange.json({ result: "ok", leaseMs: Math.floor(reply.leaseMs) });
  } catch (error) {
    log.warn("renew failed", { requestId: exchange.id, error });
    answerUnavailable(exchange);
  }
};

/** Never waits. */
export const cancel: Handler<CallerContext> = (exchange, { queue, live }, body) => {
  const fields = fieldsOf(exchange, body, cancelCall);
  if (fields === undefined) return;
  const verified = live.tokens.verify(fields.queryToken);
  if (verified.kind === "forged") exchange.problem("BAD_TOKEN");
  else exchange.json({ result: verified.kind === "valid" ? queue.cancel(verified.claims) : "gone" });
};

export const report: Handler<CallerContext> = async (exchange, context, body) => {
  const { queue, log, telemetry, live, refusals } = context;
  const fields = fieldsOf(exchange, body, reportCall);
  if (fields === undefined) return;
  const named = namedHost(fields, live.hosts) ?? NO_HOST;
  if ("field" in named) return badFields(exchange, named);
  const { host, hostname } = named;
  if (refusals.refusesHost(exchange, host, context)) return;
  try {
    await withinPatience(
      queue.report({ host, ...(hostname === undefined ? {} : { hostname }), status: fields.status }),
    );
    telemetry.hub.stir(host);
    exchange.json({ result: "ok" });
  } catch (error) {
    log.warn("report failed", { requestId: exchange.id, error });
    answerUnavailable(exchange);
  }
};

function answerUnavailable(exchange: Exchange): void {
  exchange.problem("UNAVAILABLE", undefined, { headers: { "Retry-After": 1 } });
}
