/** The wait for a slot of this machine. It continues at the next keeper if the keeper dies. */
import type { Pending } from "@slotkeeper/client";
import { type KeeperAnswer, KeeperError, type KeeperLink } from "@slotkeeper/client/node/parts";

export interface LocalWait {
  /** As the service knows it: `sem:NAME`. */
  readonly hostname: string;
  readonly bucket: string;
  readonly slots: number | undefined;
  readonly width: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly headers: { readonly [name: string]: string };
  readonly signal: AbortSignal;
  /** Confirms to the keeper that the slot is used. Returns false if it was taken back, because this process was stopped. */
  readonly confirm: (slotToken: string) => Promise<boolean>;
}

export interface LocalGrant {
  readonly slotToken: string;
  readonly fence: number;
  /** The number of the slot, from 1. */
  readonly slot: number;
}

type Answer =
  | ({ readonly result: "granted"; readonly queryToken: string } & LocalGrant)
  | ({ readonly result: "pending"; readonly queryToken: string } & Pending)
  | { readonly result: "timeout" }
  | { readonly result: "throttled" };

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

/**
 * One wait: a session at the keeper. Its calls throw an error with the code `ACQUIRE_TIMEOUT` if no slot comes in time,
 * and `THROTTLED` if a person has opened the breaker of the name.
 */
export class LocalSession {
  readonly #link: KeeperLink;
  readonly #wait: LocalWait;
  readonly #timeout: AbortSignal;
  #requestId = crypto.randomUUID();
  #pending: (Pending & { readonly queryToken: string }) | undefined;
  /** The token of a session that has ended. The next one gets its place. */
  #placeOf: string | undefined;
  #show: (pending: Pending) => void = () => {};

  constructor(link: KeeperLink, wait: LocalWait) {
    this.#link = link;
    this.#wait = wait;
    this.#timeout = AbortSignal.timeout(Math.min(wait.timeoutMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS));
  }

  /** One call, which the keeper holds for a while. Returns `undefined` if there is no slot yet. */
  async ask(): Promise<LocalGrant | undefined> {
    const answer = await this.#call();
    if (answer.result === "granted" && (await this.#wait.confirm(answer.slotToken))) return answer;
    if (answer.result === "throttled") {
      const why = "its breaker is open: slotkeeper top --local --dashboard can close it";
      throw Object.assign(new Error(`No slot of "${this.#name}": ${why}.`), { code: "THROTTLED" });
    }
    if (answer.result === "pending") {
      this.#pending = answer;
      this.#placeOf = undefined;
      this.#show(answer);
      return undefined;
    }
    // The session has ended, for example because this process was stopped: the next call begins another one. If that one
    // ends at once, the place is lost, too.
    this.#placeOf = answer.result === "granted" ? answer.queryToken : this.#pending?.queryToken;
    this.#pending = undefined;
    this.#requestId = crypto.randomUUID();
    return undefined;
  }

  /** Asks until there is a slot. */
  async wait(): Promise<LocalGrant> {
    for (;;) {
      const grant = await this.ask();
      if (grant !== undefined) return grant;
    }
  }

  /** Calls `show` with the place in the queue, now and whenever the keeper reports it. */
  onPending(show: (pending: Pending) => void): void {
    this.#show = show;
    if (this.#pending !== undefined) show(this.#pending);
  }

  async #call(): Promise<Answer> {
    const { headers, signal, timeoutMs } = this.#wait;
    const call = { path: "/api/v0/fairqueue/acquire", method: "POST", headers };
    try {
      const either = AbortSignal.any([signal, this.#timeout]);
      return answerOf(await this.#link.call({ ...call, body: JSON.stringify(this.#body()), signal: either })) as Answer;
    } catch (error) {
      if (signal.aborted || !this.#timeout.aborted) throw error;
      const fields = { code: "ACQUIRE_TIMEOUT", hostname: this.#name, waitedMs: timeoutMs };
      throw Object.assign(new Error("timed out"), fields);
    }
  }

  get #name(): string {
    return this.#wait.hostname.replace(/^sem:/, "");
  }

  #body(): object {
    const confirms = true;
    if (this.#pending !== undefined) return { queryToken: this.#pending.queryToken, confirms };
    const requestId = this.#requestId;
    if (this.#placeOf !== undefined) return { queryToken: this.#placeOf, requestId, confirms };
    const { hostname, bucket, slots: limit, width } = this.#wait;
    return { hostname, bucket, limit, width, requestId, maxWaitMs: LONGEST_WAIT_MS, waitMs: FIRST_MS, confirms };
  }
}

/** The JSON of the answer. Throws its sentence: as a `KeeperError` if the keeper cannot be used, else as a `KeeperRefusal`. */
export function answerOf({ status, text }: KeeperAnswer): unknown {
  const body = JSON.parse(text) as { detail?: string; title?: string; code?: string };
  if (status === 200) return body;
  const reason = body.detail ?? body.title ?? `The keeper answered with status ${status}`;
  // It has another protocol, cannot write, or has failed.
  if (status >= 500 || body.code === "BAD_REQUEST") throw new KeeperError({ reason });
  throw new KeeperRefusal(`${reason}.`, body.code);
}
