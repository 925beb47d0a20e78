import type { BeginAnswer, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import {
  type BatchReply,
  type BeginRequest,
  FairQueue,
  MemoryStore,
  type QueueEvent,
  type SlotStore,
  type WaiterBatch,
} from "@slotkeeper/queue";
import { drained, Random, VirtualClock } from "@slotkeeper/testkit/simulator";

type More = Partial<BeginRequest>;
type FreedListener = Parameters<SlotStore["onFreed"]>[0];

/** One instance, one store, virtual time. Every try at the store is recorded; the store can be made to fail, to stall or to answer late. */
export class Bench {
  readonly clock: VirtualClock;
  readonly events: QueueEvent[] = [];
  readonly tries: { readonly batch: WaiterBatch; readonly reply: BatchReply }[] = [];
  readonly calls: string[] = [];
  readonly memory: MemoryStore;
  readonly queue: FairQueue;
  isStoreDown = false;
  stalled: (() => void)[] | undefined;
  /** Of these operations the answers are kept back: what is decided is on its way until let go. */
  readonly late: { tryAcquire?: (() => void)[] | undefined; release?: (() => void)[] | undefined } = {};
  /** The store does not tell of slots that are freed. */
  isSilent = false;
  #ids = 0;

  constructor(config: FairQueueConfig = {}, shared?: Bench) {
    const random = new Random(1);
    this.clock = shared?.clock ?? new VirtualClock();
    this.memory = shared?.memory ?? new MemoryStore({ clock: this.clock, newToken: () => `token-${this.#ids++}` });
    this.queue = new FairQueue({
      store: this.#recorded(),
      clock: this.clock,
      random: () => random.next(),
      newSessionId: () => `${shared === undefined ? "one" : "two"}-${this.#ids++}`,
      instance: shared === undefined ? "one" : "two",
      config,
      observe: (event) => this.events.push(event),
    });
  }

  ask(bucket: string, more: More = {}): Promise<BeginAnswer> {
    return this.queue.begin({ host: "h", hostname: "h", bucket, ...more });
  }

  /** First call; the session it made. */
  async begin(bucket = "a", more: More = {}): Promise<SessionClaims> {
    const answer = await this.ask(bucket, more);
    if (answer.result !== "pending") throw new Error(`Expected pending, got ${JSON.stringify(answer)}`);
    await drained();
    return answer.session;
  }

  /** Polls, and polls again while pending. */
  follow(session: SessionClaims): Followed {
    const followed = new Followed(session);
    const loop = async () => {
      while (!followed.isStopped) {
        followed.last = await this.queue.poll(session);
        if (followed.last.result !== "pending") return;
      }
    };
    void loop();
    return followed;
  }

  async want(bucket = "a", more: More = {}): Promise<Followed> {
    const followed = this.follow(await this.begin(bucket, more));
    await drained();
    return followed;
  }

  /** A slot, now. */
  async take(bucket = "a", more: More = {}): Promise<string> {
    const answer = await this.ask(bucket, { waitMs: 1, ...more });
    if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
    return answer.slotToken;
  }

  async release(slotToken: string, more: object = {}): Promise<void> {
    this.queue.release({ slotToken, ...more });
    await drained();
  }

  async held(host = "h"): Promise<number> {
    const { hosts } = await this.memory.snapshot();
    return hosts.find((one) => one.host === host)?.inFlight ?? 0;
  }

  ofType<T extends QueueEvent["type"]>(type: T): Extract<QueueEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<QueueEvent, { type: T }> => event.type === type);
  }

  #unlessSilent(listener: FreedListener): FreedListener {
    return (freed) => {
      if (!this.isSilent) listener(freed);
    };
  }

  #recorded(): SlotStore {
    const { memory } = this;
    return new Proxy<SlotStore>(memory, {
      get: (_, key) => {
        const value: unknown = Reflect.get(memory, key);
        if (key === "onFreed") return (listener: FreedListener) => memory.onFreed(this.#unlessSilent(listener));
        if (typeof value !== "function") return value;
        return async (argument: never) => {
          this.calls.push(String(key));
          if (this.stalled !== undefined) await new Promise<void>((resolve) => this.stalled?.push(resolve));
          if (this.isStoreDown) throw new Error("the store is down");
          const result: unknown = await value.call(memory, argument);
          if (key === "tryAcquire") this.tries.push({ batch: argument, reply: result as BatchReply });
          const late = key === "tryAcquire" || key === "release" ? this.late[key] : undefined;
          if (late !== undefined) await new Promise<void>((resolve) => late.push(resolve));
          return result;
        };
      },
    });
  }
}

/** A client that keeps polling. */
export class Followed {
  readonly session: SessionClaims;
  last: PollAnswer | undefined;
  isStopped = false;

  constructor(session: SessionClaims) {
    this.session = session;
  }

  get isGranted(): boolean {
    return this.last?.result === "granted";
  }

  get slotToken(): string {
    if (this.last?.result !== "granted") throw new Error(`Expected granted, got ${JSON.stringify(this.last)}`);
    return this.last.slotToken;
  }
}
