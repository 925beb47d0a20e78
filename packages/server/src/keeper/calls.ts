/**
 * The calls of holders: those of the service (`/api/v0/fairqueue/…`), so that its client works unchanged, and `hold`.
 * The engine checks the fields. The schemas of the service would take 20 MB and most of the start.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type AcquireReply,
  type BeginAnswer,
  type FirstCall,
  type PollCall,
  PROBLEMS,
  type ProblemCode,
  type RenewCall,
  type SessionClaims,
} from "@slotkeeper/protocol";
import { realClock } from "slotkeeper";
import { problemBody } from "../http/exchange.ts";
import { refusalOf, wireAnswer } from "../http/wire-answer.ts";
import { plainName } from "../queue/names.ts";
import { systemWords } from "../words/system-words.ts";
import type { Holder } from "./holder.ts";
import { sessionOf } from "./holders.ts";
import type { KeeperParts } from "./keeper-parts.ts";

/** The fields of all calls. Each call reads its own. */
type Body = FirstCall &
  Partial<PollCall & RenewCall> & {
    /** The caller calls `hold` before it uses the slot. If it does not in time, the slot is taken back. */
    readonly confirms?: boolean;
  };

interface HolderExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly holder: Holder;
  readonly body: Body;
}

type CallHandler = (exchange: HolderExchange, context: KeeperParts) => void | Promise<void>;

const acquire: CallHandler = async ({ response, holder, body }, context) => {
  const { queue, tokens, leases, folder } = context;
  const controller = new AbortController();
  response.on("close", () => controller.abort());
  let answer: BeginAnswer;
  try {
    answer = await asked(holder, body, context, controller.signal);
  } catch (error) {
    if (controller.signal.aborted) return;
    const refusal = refusalOf(error);
    if (refusal !== undefined) problem(response, refusal.code, refusal.message);
    else if (error instanceof TypeError) problem(response, "BAD_FIELDS", error.message);
    else throw error;
    return;
  }
  if (answer.result === "pending" && leases.failure !== undefined) {
    queue.cancel(answer.session);
    problem(response, "BAD_REQUEST", `The keeper cannot write to ${folder}: ${systemWords(leases.failure)}`);
    return;
  }
  const { body: reply, headers } = wireAnswer(answer, (session) => tokens.sign(session, body.queryToken));
  const slot = reply.result === "granted" ? { slot: leases.slotOf(reply.slotToken) } : {};
  json(response, 200, { ...(reply satisfies AcquireReply), ...slot }, headers);
  if (reply.result === "granted" && body.confirms === true) context.expectHold(reply.slotToken);
};

function asked(
  { about }: Holder,
  body: Body,
  { queue, tokens, keyOf }: KeeperParts,
  signal: AbortSignal,
): Promise<BeginAnswer> {
  const { hostname = "", bucket, ipBucket, requestId = "", queryToken, waitMs, limit, width, maxWaitMs } = body;
  for (const [field, value] of Object.entries({ hostname, requestId, queryToken: queryToken ?? "" })) {
    if (typeof value !== "string") throw new TypeError(`Expected \`${field}\` to be a string, got ${String(value)}`);
  }
  if (queryToken !== undefined) {
    const verified = tokens.verify(queryToken);
    if (verified.kind !== "valid") return Promise.resolve({ result: "timeout", reason: "unknown-token" });
    return queue.poll(requestId === "" ? verified.claims : again(verified.claims, about.id, requestId), { signal });
  }
  const name = plainName(hostname);
  const sessionId = sessionOf(about.id, requestId);
  const host = name === "" ? "" : keyOf(name);
  const asked = { waitMs, limit, width, maxWaitMs, signal };
  return queue.begin({ host, hostname: name, bucket: bucket ?? ipBucket, sessionId, ...asked });
}

/**
 * A new session at the place of one that has ended, because its process was stopped. The new one has not ended: its
 * token says so (END3).
 */
function again(claims: SessionClaims, holder: string, requestId: string): SessionClaims {
  return { ...claims, id: sessionOf(holder, requestId), pendingAt: Math.max(claims.arrivedAt, realClock.now()) };
}

const renew: CallHandler = async ({ response, body }, { queue }) => {
  const reply = await queue.renew(String(body.slotToken));
  if (reply === undefined) problem(response, "SLOT_LOST");
  else json(response, 200, { result: "ok", leaseMs: Math.floor(reply.leaseMs) });
};

const release: CallHandler = ({ response, body }, { queue }) => {
  queue.release({ slotToken: String(body.slotToken) }, ({ isHeld }) =>
    json(response, 200, isHeld === false ? { result: "ok", released: false } : { result: "ok" }),
  );
};

const cancel: CallHandler = ({ response, body }, { queue, tokens }) => {
  const verified = tokens.verify(String(body.queryToken));
  json(response, 200, { result: verified.kind === "valid" ? queue.cancel(verified.claims) : "gone" });
};

/**
 * Confirms that the slot is used. Stays open, after a first line, until `exec` or the lease ends. Then `exec` calls again
 * and learns that it is lost.
 */
const hold: CallHandler = ({ response, holder, body }, { leases }) => {
  const token = String(body.slotToken);
  if (!leases.confirm(token)) {
    problem(response, "SLOT_LOST");
    return;
  }
  holder.opened();
  leases.whenEnded(token, () => response.end());
  response.on("close", () => holder.closed());
  response.writeHead(200, { "Content-Type": "application/json" });
  response.write("{}\n");
};

/** The calls by their path. */
export const CALLS: { readonly [path: string]: CallHandler } = {
  "/api/v0/fairqueue/acquire": acquire,
  "/api/v0/fairqueue/renew": renew,
  "/api/v0/fairqueue/release": release,
  "/api/v0/fairqueue/cancel": cancel,
  "/api/v0/local/hold": hold,
};

export function json(
  response: ServerResponse,
  status: number,
  body: object | string,
  headers?: { readonly [name: string]: string | number },
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function problem(response: ServerResponse, code: ProblemCode, detail?: string): void {
  const { status } = PROBLEMS[code];
  json(response, status, problemBody(code, status, { detail }));
}
