import type { FairQueueConfig } from "@slotkeeper/protocol";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { Book, type Decision, decide, type Input } from "@slotkeeper/queue/internals";

export const START = 1_000_000;

const UNCHANGED: FairQueueConfig = {};

interface Settings {
  readonly options: ReturnType<typeof resolveOptions>;
  readonly policy: ReturnType<typeof resolveHost>["policy"];
}

/** One host, and one instance after the other that decides. */
export class Decider {
  readonly book: Book;
  /** The instance that decides next. */
  instance = "i";
  /** The name of the host, if the callers sent it. */
  hostname: string | undefined;
  /** When the instances were last seen, after the start. */
  seenMs: Readonly<Record<string, number>> = {};
  /** Sessions whose slot no call has taken. */
  undelivered: readonly string[] = [];
  #secrets = 0;
  readonly #config: FairQueueConfig;
  readonly #settings = new Map<FairQueueConfig, Settings>();

  constructor(config: FairQueueConfig, book = new Book("h", START)) {
    this.#config = config;
    this.book = book;
  }

  /** Many decisions have the same settings, and to check them takes longer than to decide. */
  #resolved(change: FairQueueConfig): Settings {
    let settings = this.#settings.get(change);
    if (settings === undefined) {
      const options = resolveOptions({ ...this.#config, ...change });
      settings = { options, policy: resolveHost(options, undefined).policy };
      this.#settings.set(change, settings);
    }
    return settings;
  }

  /** How long after its grant a session may be canceled. */
  get cancelMs(): number {
    return resolveOptions(this.#config).cancelMs;
  }

  /** Decides at a time after the start. The named sessions have an open poll. */
  at(ms: number, inputs: readonly Input[], polled: readonly string[], change: FairQueueConfig = UNCHANGED): Decision {
    const { options, policy } = this.#resolved(change);
    const now = START + ms;
    const decision = decide(this.book, inputs, {
      ...options,
      now,
      instance: this.instance,
      limits: { policy, loadedAt: now, hostname: this.hostname },
      isSemaphore: false,
      mostEnds: 100,
      newSecret: () => `${this.#secrets++}`,
      isPolledHere: (session) => polled.includes(session),
      awayHere: () => undefined,
      isTokenSent: () => true,
      isUndelivered: (session) => this.undelivered.includes(session),
      seenAt: (instance) => {
        const ms = this.seenMs[instance];
        return ms === undefined ? undefined : START + ms;
      },
    });
    if (this.book.isChanged) this.book.keep(`${ms}.x`);
    return decision;
  }
}

export type Arrival = Extract<Input, { readonly kind: "arrive" }>;

export function arrive(session: string, bucket: string, ms: number, deadlineMs: number): Arrival {
  const times = { arrivedAt: START + ms, deadlineAt: START + deadlineMs, openMs: 1_000 };
  return { kind: "arrive", session, bucket, weight: 1, limit: undefined, ...times };
}

export function release(book: Book, session: string): Extract<Input, { readonly kind: "release" }> {
  const slotToken = book.leaseOf(session)?.key ?? "";
  return { kind: "release", slotToken, hitAt: undefined, status: undefined };
}
