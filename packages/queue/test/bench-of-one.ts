import type { BeginAnswer, FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import {
  type BeginRequest,
  type Commit,
  FairQueue,
  type HostSnapshot,
  type HostStore,
  MemoryStore,
  type QueueEvent,
  snapshotOf,
} from "@slotkeeper/queue";
import { drained, SkewedClock, VirtualClock } from "@slotkeeper/testkit/simulator";

type More = Partial<BeginRequest>;

/** One instance, one store, virtual time. Every call is recorded; the store can be made to fail, to stall or to answer late. */
export class Bench {
  readonly clock: VirtualClock;
  /** The clock of the instance. It may jump; the store's does not. */
  readonly ownClock: SkewedClock;
  readonly events: QueueEvent[] = [];
  readonly commits: Commit[] = [];
  readonly calls: string[] = [];
  readonly memory: MemoryStore;
  readonly queue: FairQueue;
  isStoreDown = false;
  /** Calls wait here before they reach the store. */
  stalled: (() => void)[] | undefined;
  /** The store has accepted these commits; their answers wait here. */
  late: (() => void)[] | undefined;
  /** The same for reads. */
  lateReads: (() => void)[] | undefined;
  /** The store sends this instance no notices. */
  isUnnotified = false;
  #ids = 0;

  constructor(config: FairQueueConfig = {}, shared?: Bench, isShared = false, mostEnds = 1_000) {
    const name = shared === undefined ? "one" : "two";
    this.clock = shared?.clock ?? new VirtualClock();
    this.ownClock = new SkewedClock(this.clock);
    this.memory = shared?.memory ?? new MemoryStore({ clock: this.clock, isShared });
    this.queue = new FairQueue({
      store: this.#recorded(),
      clock: this.ownClock,
      newSessionId: () => `${name}-${this.#ids++}`,
      newSecret: () => `${name}-secret-${this.#ids++}`,
      instance: name,
      mostEnds,
      config,
      observe: (event) => this.events.push(event),
    });
  }

  ask(bucket: string, more: More = {}): Promise<BeginAnswer> {
    return this.queue.begin({ host: "h", hostname: "h", bucket, ...more });
  }

  /** Makes a first call and returns its session. */
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

  /** Acquires a slot without waiting. */
  async take(bucket = "a", more: More = {}): Promise<string> {
    const answer = await this.ask(bucket, { waitMs: 1, ...more });
    if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
    return answer.slotToken;
  }

  async release(slotToken: string, more: object = {}): Promise<void> {
    this.queue.release({ slotToken, ...more });
    await drained();
  }

  /** The host as the store has it. */
  async snapshot(host = "h"): Promise<HostSnapshot | undefined> {
    const image = (await this.memory.peek([host])).get(host);
    return image === undefined ? undefined : snapshotOf(host, image, this.clock.now());
  }

  async held(host = "h"): Promise<number> {
    return (await this.snapshot(host))?.inFlight ?? 0;
  }

  ofType<T extends QueueEvent["type"]>(type: T): Extract<QueueEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<QueueEvent, { type: T }> => event.type === type);
  }

  #recorded(): HostStore {
    const { memory } = this;
    return new Proxy<HostStore>(memory, {
      get: (_, key) => {
        const value: unknown = Reflect.get(memory, key);
        if (key === "watch") {
          const watch: HostStore["watch"] = (instance, listener) =>
            memory.watch(instance, (notice) => {
              if (!this.isUnnotified) listener(notice);
            });
          return watch;
        }
        if (typeof value !== "function") return value;
        return async (...args: unknown[]) => {
          this.calls.push(String(key));
          if (this.stalled !== undefined) await new Promise<void>((resolve) => this.stalled?.push(resolve));
          if (this.isStoreDown) throw new Error("the store is down");
          const result: unknown = await value.apply(memory, args);
          if (key === "commit") this.commits.push(args[0] as Commit);
          const late = key === "commit" ? this.late : key === "read" ? this.lateReads : undefined;
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
