// A Worker in front of an upstream that takes a limited number of requests at a time. Every request waits for a slot of
// the service, holds it until the upstream's answer has been read to its end, and reports the status to the breaker.
import { bucketOfIp, SlotClient, SlotClientError } from "@slotkeeper/client";

interface Env {
  /** The address of the service, and its shared key if it has one. */
  readonly SLOTKEEPER_URL: string;
  readonly SLOTKEEPER_TOKEN?: string;
  /** The address of the upstream. */
  readonly UPSTREAM: string;
}

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}

/** One client for all requests of this isolate, because it remembers what it learns about the service. */
let keeper: SlotClient | undefined;

export default {
  fetch(request: Request, env: Env, context: Context): Promise<Response> {
    const answer = answered(request, env, context);
    // When a client disconnects, only promises given to `waitUntil` continue: here, leaving the queue or releasing the
    // slot.
    context.waitUntil(answer.catch(() => {}));
    return answer;
  },
};

async function answered(request: Request, env: Env, context: Context): Promise<Response> {
  keeper ??= new SlotClient({ url: env.SLOTKEEPER_URL, token: env.SLOTKEEPER_TOKEN });
  const target = targetOf(request, env);
  const bucket = bucketOfIp(request.headers.get("cf-connecting-ip") ?? "127.0.0.1");
  try {
    const slot = await keeper.acquire({
      hostname: target.hostname,
      bucket,
      // Aborts when the client disconnects (compatibility flag `enable_request_signal`).
      signal: request.signal,
      // Releases and cancellations continue after the answer.
      waitUntil: (promise) => context.waitUntil(promise),
    });
    return await proxied(slot, request, target, context);
  } catch (error) {
    return refused(error);
  }
}

/**
 * The request's path and query at the upstream. `new URL(path, UPSTREAM)` would let a path like `//host/` choose
 * another host.
 */
function targetOf(request: Request, env: Env): URL {
  const { pathname, search } = new URL(request.url);
  return Object.assign(new URL(env.UPSTREAM), { pathname, search });
}

type Slot = Awaited<ReturnType<SlotClient["acquire"]>>;

async function proxied(slot: Slot, request: Request, target: URL, context: Context): Promise<Response> {
  try {
    const signal = AbortSignal.any([request.signal, slot.signal]);
    const response = await fetch(target, {
      method: request.method,
      headers: request.headers,
      body: request.body,
      signal,
    });
    const { readable, writable } = new TransformStream();
    const sent = (response.body ?? new Response("").body)?.pipeTo(writable).catch(() => {});
    context.waitUntil(Promise.resolve(sent).then(() => slot.release({ status: response.status })));
    return new Response(readable, response);
  } catch (error) {
    context.waitUntil(slot.release());
    throw error;
  }
}

/** The errors of the client determine the answer to the caller, and when it may try again. */
function refused(error: unknown): Response {
  if (!(error instanceof SlotClientError)) throw error;
  const { retryAfterMs = 1_000 } = error as { retryAfterMs?: number };
  const headers = { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
  return Response.json({ code: error.code, message: error.message }, { status: 503, headers });
}
