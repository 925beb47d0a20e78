/** The wait for a slot of this machine. It continues at the next keeper if the keeper dies. */
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
  /** The number of the slot, from 1. */
  readonly slot: number;
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

/** One wait: a session at the keeper. Its calls throw an error with the code `ACQUIRE_TIMEOUT` if no slot comes in time. */
export class LocalSession {
  readonly #link: KeeperLink;
  readonly #wait: LocalWait;
  readonly #timeout: AbortSignal;
  #requestId = randomUUID();
  #pending: (Pending & { readonly queryToken: string }) | undefined;

  constructor(link: KeeperLink, wait: LocalWait) {
    this.#link = link;
    this.#wait = wait;
    this.#timeout = AbortSignal.timeout(Math.min(wait.timeoutMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS));
  }

  /** One call, which the keeper holds for a while. Returns `undefined` if there is no slot yet. */
  async ask(): Promise<LocalGrant | undefined> {
    const answer = await this.#call();
    if (answer.result === "granted") return answer;
    this.#pending = answer.result === "pending" ? answer : undefined;
    // The keeper does not know the session any more: the next call begins another one.
    if (answer.result === "timeout") this.#requestId = randomUUID();
    return undefined;
  }

  /** Asks until there is a slot. */
  async wait(onPending: (pending: Pending) => void): Promise<LocalGrant> {
    for (;;) {
      if (this.#pending !== undefined) onPending(this.#pending);
      const grant = await this.ask();
      if (grant !== undefined) return grant;
    }
  }

  async #call(): Promise<Answer> {
    const { headers, signal, hostname, timeoutMs } = this.#wait;
    const call = { path: "/api/v0/fairqueue/acquire", method: "POST", headers };
    try {
      const either = AbortSignal.any([signal, this.#timeout]);
      return answerOf(await this.#link.call({ ...call, body: JSON.stringify(this.#body()), signal: either })) as Answer;
    } catch (error) {
      if (signal.aborted || !this.#timeout.aborted) throw error;
      const name = hostname.replace(/^sem:/, "");
      throw Object.assign(new Error("timed out"), { code: "ACQUIRE_TIMEOUT", hostname: name, waitedMs: timeoutMs });
    }
  }

  #body(): object {
    if (this.#pending !== undefined) return { queryToken: this.#pending.queryToken };
    const { hostname, bucket, slots: limit } = this.#wait;
    return { hostname, bucket, limit, requestId: this.#requestId, maxWaitMs: LONGEST_WAIT_MS, waitMs: FIRST_MS };
  }
}

/** The JSON of the answer. Throws a `KeeperRefusal` with its sentence. */
export function answerOf({ status, text }: KeeperAnswer): unknown {
  const body = JSON.parse(text) as { detail?: string; title?: string; code?: string };
  if (status === 200) return body;
  throw new KeeperRefusal(`${body.detail ?? body.title ?? `The keeper answered with status ${status}`}.`, body.code);
}
