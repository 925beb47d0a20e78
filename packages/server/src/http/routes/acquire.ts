import {
  type AcquireReply,
  type BeginAnswer,
  type FirstCall,
  SEMAPHORE_PREFIX,
  SHARED_BUCKET,
} from "@slotkeeper/protocol";
import { FirstCallSchema, PollSchema } from "@slotkeeper/protocol/schemas";
import type { BeginRequest, CallSignal } from "@slotkeeper/queue";
import { type HostDirectory, type NamedHost, NO_HOST, namedHost } from "../../queue/names.ts";
import { type FieldProblem, validator } from "../../words/validator.ts";
import type { CallerContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import { badFields, type Exchange, fieldsOf, type Headers, type JsonObject } from "../exchange.ts";
import { rateLimitHeaders } from "../rate-limit.ts";
import { refusalOf, wireAnswer } from "../wire-answer.ts";

const firstCall = validator(FirstCallSchema);
const poll = validator(PollSchema);

const NO_PROBLEMS: readonly FieldProblem[] = [];

/** `undefined` if the exchange was answered, or its caller has left. */
type Answered = Promise<BeginAnswer | undefined> | BeginAnswer | undefined;

/** The first call creates a session, or finds it by its `requestId`. Every later call continues to wait for it. */
export const acquire: Handler<CallerContext> = async (exchange, context, body) => {
  const { queryToken } = body;
  const isFirst = queryToken === undefined || queryToken === "";
  const traced = context.traces?.waiting(exchange);
  let answer: BeginAnswer | undefined;
  try {
    answer = await (isFirst ? begin(exchange, body, context) : pollOn(exchange, body, context));
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    const { code, message, field } = refusal;
    exchange.problem(code, message, field === undefined ? undefined : { errors: [{ field, message }] });
  }
  if (answer === undefined) return;
  traced?.answered(answer);
  const { body: reply, headers = quotaHeaders(answer, context) } = wireAnswer(answer, (session) =>
    context.live.tokens.sign(session, isFirst ? undefined : (queryToken as string)),
  );
  exchange.json(reply, context.held.isDraining ? { ...stopping(reply), ...headers } : headers);
};

/** Of a session that goes on, at a host with budgets. Elsewhere the headers would cost more than 3 % of the throughput (S1). */
function quotaHeaders(answer: BeginAnswer, { queue }: CallerContext): Headers | undefined {
  const quotas = "session" in answer ? queue.quotas(answer.session.host) : undefined;
  return quotas === undefined ? undefined : rateLimitHeaders(quotas);
}

function pollOn(exchange: Exchange, body: JsonObject, context: CallerContext): Answered {
  const fields = fieldsOf(exchange, body, poll);
  if (fields === undefined) return undefined;
  const verified = context.live.tokens.verify(fields.queryToken);
  if (verified.kind === "unknown") return { result: "timeout", reason: "unknown-token" };
  if (verified.kind === "forged") {
    exchange.problem("BAD_TOKEN");
    return undefined;
  }
  const { claims } = verified;
  return context.held.hold(
    exchange,
    (signal) => context.queue.poll(claims, { signal }),
    () => context.queue.poll(claims, { waitMs: 0 }),
    claims.id,
  );
}

function begin(exchange: Exchange, body: JsonObject, context: CallerContext): Answered {
  const call = body as FirstCall;
  const named = nameOf(call, context.live.hosts);
  if ("errors" in named) return badFields(exchange, ...named.errors);
  if (context.refusals.refusesHost(exchange, named.host, context)) return undefined;
  // The name finds the session again: when the request is repeated, and when a waiting call is asked again at a stop.
  const sessionId = isGiven(call.requestId)
    ? context.live.tokens.sessionIdOf(named.host, bucketOf(call) ?? SHARED_BUCKET, call.requestId)
    : context.newSessionId();
  const ask = (waitMs: number | undefined, signal: CallSignal | undefined) =>
    context.queue.begin(beginRequest(call, named, sessionId, waitMs, signal));
  const waitMs = call.waitMs ?? preferredWaitMs(exchange);
  if (!isPositive(waitMs)) return ask(undefined, undefined);
  return context.held.hold(
    exchange,
    (signal) => ask(waitMs, signal),
    () => ask(undefined, undefined),
  );
}

const WAIT = /(?:^|,)\s*wait\s*=\s*(\d{1,9})\s*(?=[,;]|$)/i;
/** A quoted string, or one that never ends. What it has is no preference of its own. */
const QUOTED = /"((?:[^"\\]|\\.)*)(?:"|$)/g;

/** `Prefer: wait=N` of a first call (RFC 7240), in milliseconds. A preference that is not understood is ignored. */
function preferredWaitMs(exchange: Exchange): number | undefined {
  const preferences = (exchange.header("prefer") ?? "").replaceAll(QUOTED, (_, text: string) =>
    /^\d+$/.test(text) ? text : "_",
  );
  const [, seconds] = WAIT.exec(preferences) ?? [];
  if (seconds === undefined) return undefined;
  exchange.setHeader("Preference-Applied", `wait=${seconds}`);
  return Number(seconds) * 1000;
}

function nameOf(call: FirstCall, hosts: HostDirectory): NamedHost | { errors: readonly FieldProblem[] } {
  const checked = firstCall.check(call);
  const problems = "problems" in checked ? checked.problems : NO_PROBLEMS;
  const isBad = (field: string) => problems.some((problem) => problem.field === field);
  const named = isBad("hostname") || isBad("hostnameHash") ? undefined : (namedHost(call, hosts) ?? NO_HOST);
  const errors = [
    ...problems,
    ...(named !== undefined && "field" in named ? [named] : []),
    ...bucketProblems(call, isBad),
    ...sizeProblems(call, isBad),
  ];
  return errors.length === 0 ? (named as NamedHost) : { errors };
}

/** One literal with every field: copying and extending an object would cost more than creating the session. */
function beginRequest(
  call: FirstCall,
  { host, hostname }: NamedHost,
  sessionId: string,
  waitMs: number | undefined,
  signal: CallSignal | undefined,
): BeginRequest {
  const { throttleTimeWindowSeconds, limit, maxWaitMs, width, cost, keys, class: named } = call;
  const throttleWindowMs = isPositive(throttleTimeWindowSeconds) ? throttleTimeWindowSeconds * 1000 : undefined;
  return {
    host,
    hostname,
    bucket: bucketOf(call),
    sessionId,
    waitMs,
    throttleWindowMs,
    limit,
    maxWaitMs,
    width,
    cost,
    keys,
    class: named,
    signal,
  };
}

function bucketOf({ bucket, ipBucket }: FirstCall): string | undefined {
  return bucket ?? ipBucket;
}

function bucketProblems({ bucket, ipBucket }: FirstCall, isBad: (field: string) => boolean): FieldProblem[] {
  if (bucket === undefined || ipBucket === undefined || bucket === ipBucket) return [];
  if (isBad("bucket") || isBad("ipBucket")) return [];
  const shown = `got ${JSON.stringify(bucket)} and ${JSON.stringify(ipBucket)}`;
  return [{ field: "bucket", message: `Expected \`bucket\` and \`ipBucket\` to be the same, ${shown}` }];
}

/** Only named semaphores choose their number of slots and their wait. */
function sizeProblems(call: FirstCall, isBad: (field: string) => boolean): FieldProblem[] {
  if (typeof call.hostname === "string" && call.hostname.toLowerCase().startsWith(SEMAPHORE_PREFIX)) return [];
  return (["limit", "maxWaitMs"] as const)
    .filter((field) => call[field] !== undefined && !isBad(field))
    .map((field) => ({
      field,
      message: `\`${field}\` is allowed only with a \`hostname\` that begins with \`${SEMAPHORE_PREFIX}\``,
    }));
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== "";
}

function isPositive(value: number | undefined): value is number {
  return value !== undefined && value > 0;
}

/** A stopping service answers at once. Its caller should return after a pause, on another connection. */
function stopping({ result }: AcquireReply): Headers {
  return { Connection: "close", ...(result === "pending" ? { "Retry-After": 1 } : {}) };
}
