/** The wait for a slot of this machine: one session at the keeper, or at the one after it. */
import { randomUUID } from "node:crypto";
import type { Pending } from "@slotkeeper/client";
import type { KeeperAnswer, KeeperLink } from "@slotkeeper/client/node/parts";

export interface LocalWait {
  /** As the service knows it: `sem:NAME`. */
  readonly hostname: string;
  readonly bucket: string;
  readonly slots: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly headers: { readonly [name: string]: string };
  readonly signal: AbortSignal;
}

export interface LocalGrant {
  readonly slotToken: string;
  readonly fence: number;
}

type Answer =
  | ({ readonly result: "granted" } & LocalGrant)
  | ({ readonly result: "pending"; readonly queryToken: string } & Pending)
  | { readonly result: "timeout" };

/** Until the first place is shown. Later calls are held by the keeper. */
const FIRST_MS = 200;
const LONGEST_WAIT_MS = 86_400_000;

/** The keeper refused the call. `problem` is the code of the problem document. */
export class KeeperRefusal extends Error {
  readonly code = "REFUSED";
  readonly problem: string | undefined;

  constructor(message: string, problem: string | undefined) {
    super(message);
    this.problem = problem;
  }
}

/** Throws an error with the code `ACQUIRE_TIMEOUT` if no slot comes in time. */
export async function waitLocally(
  link: KeeperLink,
  wait: LocalWait,
  onPending: (pending: Pending) => void,
): Promise<LocalGrant> {
  const { hostname, bucket, slots: limit, timeoutMs = LONGEST_WAIT_MS, headers, signal } = wait;
  const startedAt = performance.now();
  const leftMs = () => Math.max(0, timeoutMs - (performance.now() - startedAt));
  const timeout = AbortSignal.timeout(Math.min(timeoutMs, LONGEST_WAIT_MS));
  const either = AbortSignal.any([signal, timeout]);
  const first = { hostname, bucket, limit, requestId: randomUUID(), maxWaitMs: LONGEST_WAIT_MS };
  let queryToken: string | undefined;
  for (;;) {
    const body = queryToken === undefined ? { ...first, waitMs: Math.min(FIRST_MS, leftMs() || 1) } : { queryToken };
    let answer: Answer;
    try {
      answer = answerOf(
        await link.call({
          path: "/api/v0/fairqueue/acquire",
          method: "POST",
          body: JSON.stringify(body),
          headers,
          signal: either,
        }),
      );
    } catch (error) {
      if (signal.aborted || !timeout.aborted) throw error;
      throw Object.assign(new Error("timed out"), {
        code: "ACQUIRE_TIMEOUT",
        hostname: hostname.replace(/^sem:/, ""),
        waitedMs: timeoutMs,
      });
    }
    if (answer.result === "granted") return answer;
    // The keeper does not know the session any more: ask again.
    queryToken = answer.result === "pending" ? answer.queryToken : undefined;
    if (answer.result === "pending") onPending(answer);
    else first.requestId = randomUUID();
  }
}

/** Throws a `KeeperRefusal` with its sentence. */
export function answerOf<T>({ status, text }: KeeperAnswer): T {
  const body = JSON.parse(text) as T & { detail?: string; title?: string; code?: string };
  if (status === 200) return body;
  throw new KeeperRefusal(`${body.detail ?? body.title ?? `The keeper answered with status ${status}`}.`, body.code);
}
