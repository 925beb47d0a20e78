import { type AcquireReply, type BeginAnswer, type FirstCall, SEMAPHORE_PREFIX } from "@slotkeeper/protocol";
import { FirstCallSchema, PollSchema } from "@slotkeeper/protocol/schemas";
import type { BeginRequest } from "@slotkeeper/queue";
import { CapacityMismatchError } from "slotkeeper";
import { newSessionId } from "../../tokens/random-names.ts";
import type { FieldProblem } from "../../validation/field-problem.ts";
import { validator } from "../../validation/validator.ts";
import type { Exchange, Headers } from "../exchange.ts";
import type { BodyHandler } from "../handler.ts";
import { namedHost } from "../host-key.ts";
import type { ServiceContext } from "../service-context.ts";
import { wireAnswer } from "../wire-answer.ts";

const firstCall = validator(FirstCallSchema);
const poll = validator(PollSchema);

/** Undefined: the exchange has been answered, or its caller has left. */
type Answered = Promise<BeginAnswer | undefined> | BeginAnswer | undefined;

/** The first call makes a session, or finds it by its `requestId`; every later one waits for it on. */
export const acquire: BodyHandler = async (exchange, body, context) => {
  const { queryToken } = body;
  const isFirst = queryToken === undefined || queryToken === "";
  let answer: BeginAnswer | undefined;
  try {
    answer = await (isFirst ? begin(exchange, body, context) : pollOn(exchange, body, context));
  } catch (error) {
    if (!(error instanceof CapacityMismatchError)) throw error;
    exchange.problem("CAPACITY_MISMATCH", error.message);
  }
  if (answer === undefined) return;
  const { body: reply, headers } = wireAnswer(answer, (session) =>
    context.live.tokens.sign(session, isFirst ? undefined : (queryToken as string)),
  );
  exchange.json(reply, context.held.isDraining ? { ...stopping(reply), ...headers } : headers);
};

function pollOn(exchange: Exchange, body: object, context: ServiceContext): Answered {
  const checked = poll.check(body);
  if ("problems" in checked) {
    exchange.problem("BAD_FIELDS", undefined, { errors: checked.problems });
    return undefined;
  }
  const verified = context.live.tokens.verify(checked.value.queryToken);
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
  );
}

function begin(exchange: Exchange, body: object, context: ServiceContext): Answered {
  const request = beginRequest(body, context);
  if ("errors" in request) {
    exchange.problem("BAD_FIELDS", undefined, request);
    return undefined;
  }
  if (request.waitMs === undefined) return context.queue.begin(request);
  return context.held.hold(
    exchange,
    (signal) => context.queue.begin({ ...request, signal }),
    () => context.queue.begin({ ...request, waitMs: undefined }),
  );
}

function beginRequest(body: object, { live }: ServiceContext): BeginRequest | { errors: readonly FieldProblem[] } {
  const checked = firstCall.check(body);
  const problems = "problems" in checked ? checked.problems : [];
  const call = body as FirstCall;
  const broken = ruleProblems(call, problems);
  const named = problems.length === 0 ? namedHost(call) : undefined;
  if (named === undefined || broken.length > 0) return { errors: [...problems, ...broken] };
  const { ipBucket, throttleTimeWindowSeconds, waitMs, limit, maxWaitMs } = call;
  const requestId = call.requestId === "" ? undefined : call.requestId;
  const sessionId = requestId === undefined ? newSessionId() : live.tokens.sessionIdOf(named.host, requestId);
  return {
    host: named.host,
    hostname: named.hostname,
    bucket: ipBucket,
    // Its name finds it again: when the request is repeated, and when a call that waits is asked again at a stop.
    sessionId,
    waitMs: isPositive(waitMs) ? waitMs : undefined,
    throttleWindowMs: isPositive(throttleTimeWindowSeconds) ? throttleTimeWindowSeconds * 1000 : undefined,
    limit,
    maxWaitMs,
  };
}

/** What the schema cannot say: a host is named, and only named semaphores choose their size. */
function ruleProblems(call: FirstCall, known: readonly FieldProblem[]): FieldProblem[] {
  const isBad = (field: string) => known.some((problem) => problem.field === field);
  const problems: FieldProblem[] = [];
  const isNamed = (call.hostname ?? "") !== "" || (call.hostnameHash ?? "") !== "";
  if (!isNamed && !isBad("hostname") && !isBad("hostnameHash")) {
    problems.push({ field: "hostname", message: "`hostname` or `hostnameHash` is required" });
  }
  if (typeof call.hostname === "string" && call.hostname.toLowerCase().startsWith(SEMAPHORE_PREFIX)) return problems;
  for (const field of ["limit", "maxWaitMs"] as const) {
    if (call[field] === undefined || isBad(field)) continue;
    problems.push({ field, message: `\`${field}\` goes with a \`hostname\` that begins with \`${SEMAPHORE_PREFIX}\`` });
  }
  return problems;
}

function isPositive(value: number | undefined): value is number {
  return value !== undefined && value > 0;
}

/** A stopping service answers at once: its caller comes back after a while, and on another connection. */
function stopping({ result }: AcquireReply): Headers {
  return { Connection: "close", ...(result === "pending" ? { "Retry-After": 1 } : {}) };
}
