// A Worker in front of an upstream that takes four requests at a time. The slots are in Durable Objects of the same Worker:
// there is no service to run.
import { bucketOfIp, SlotClient, SlotClientError } from "@slotkeeper/client";
import { type SlotNamespace, serve, slotFetch, slotObject } from "@slotkeeper/cloudflare";

/** One object for each host. All keys: docs/reference/config.md, section `fairQueue`. */
export class Slots extends slotObject({ maxSlotPerHost: 4, maxSlotPerIp: 4 }) {}

interface Env {
  /** The binding of the class above. */
  readonly SLOTS: SlotNamespace;
  /** The address of the upstream. */
  readonly UPSTREAM: string;
  /** How long a request waits for its slot, in milliseconds (20000). */
  readonly MAX_WAIT_MS?: string;
  /** For `slotkeeper status --url https://…`: a secret of the Worker. */
  readonly INTERNAL_TOKEN?: string;
}

interface Context {
  waitUntil(promise: Promise<unknown>): void;
}

export default {
  async fetch(request: Request, env: Env, context: Context): Promise<Response> {
    const { pathname } = new URL(request.url);
    const { INTERNAL_TOKEN: internalToken } = env;
    if (internalToken !== undefined && pathname.startsWith("/api/v0/")) {
      return serve(request, env.SLOTS, { internalToken });
    }
    const answer = proxied(request, env, context);
    // When a client disconnects, only promises given to `waitUntil` continue: here, leaving the queue or releasing the slot.
    context.waitUntil(answer.catch(() => {}));
    return answer;
  },
};

async function proxied(request: Request, env: Env, context: Context): Promise<Response> {
  const keeper = new SlotClient({
    url: "http://slots",
    fetch: slotFetch(env.SLOTS),
    maxWaitMs: Number(env.MAX_WAIT_MS ?? 20_000),
    waitUntil: (promise) => context.waitUntil(promise),
  });
  const { pathname, search } = new URL(request.url);
  const target = Object.assign(new URL(env.UPSTREAM), { pathname, search });
  const bucket = bucketOfIp(request.headers.get("cf-connecting-ip") ?? "127.0.0.1");
  try {
    return await keeper.run({ hostname: target.hostname, bucket, signal: request.signal }, async (slot) => {
      const signal = AbortSignal.any([request.signal, slot.signal]);
      const { method, headers, body } = request;
      const response = await fetch(target, { method, headers, body, signal });
      const content = await response.arrayBuffer();
      // The breaker pauses an upstream that answers 429 or 5xx.
      await slot.release({ status: response.status });
      return new Response(content, response);
    });
  } catch (error) {
    if (!(error instanceof SlotClientError)) throw error;
    return Response.json({ code: error.code, message: error.message }, { status: 503 });
  }
}
