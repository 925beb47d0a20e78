import type { FairQueueConfig, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { SlotStore } from "@slotkeeper/queue";
import { FairQueue, MemoryStore, type QueueEvent } from "@slotkeeper/queue";
import { drained, Random, VirtualClock } from "@slotkeeper/testkit/simulator";

/** One instance, one store, virtual time. */
export class Bench {
  readonly clock = new VirtualClock();
  readonly events: QueueEvent[] = [];
  readonly store: SlotStore;
  readonly queue: FairQueue;
  #ids = 0;

  constructor(config: FairQueueConfig = {}, wrap: (store: SlotStore) => SlotStore = (store) => store) {
    const random = new Random(1);
    this.store = wrap(new MemoryStore({ clock: this.clock, newToken: () => `token-${this.#ids++}` }));
    this.queue = new FairQueue({
      store: this.store,
      clock: this.clock,
      random: () => random.next(),
      newSessionId: () => `session-${this.#ids++}`,
      instance: "one",
      config,
      observe: (event) => this.events.push(event),
    });
  }

  /** First call; the session it made. */
  async begin(bucket = "a", more: Partial<Parameters<FairQueue["begin"]>[0]> = {}): Promise<SessionClaims> {
    const answer = await this.queue.begin({ host: "h", hostname: "h", bucket, ...more });
    if (answer.result !== "pending") throw new Error(`expected pending, got ${JSON.stringify(answer)}`);
    await drained();
    return answer.session;
  }

  /** Polls and keeps polling; the last answer that was not pending, or the latest pending one. */
  follow(session: SessionClaims): { last: PollAnswer | undefined; stop(): void } {
    const followed: { last: PollAnswer | undefined; isStopped: boolean; stop(): void } = {
      last: undefined,
      isStopped: false,
      stop() {
        this.isStopped = true;
      },
    };
    const loop = async () => {
      while (!followed.isStopped) {
        followed.last = await this.queue.poll(session);
        if (followed.last.result !== "pending") return;
      }
    };
    void loop();
    return followed;
  }

  /** Begins and follows at once. */
  async want(bucket = "a", more: Partial<Parameters<FairQueue["begin"]>[0]> = {}) {
    const session = await this.begin(bucket, more);
    const followed = this.follow(session);
    await drained();
    return { session, followed };
  }

  /** A slot, now; fails if there is none. */
  async take(bucket = "a", more: Partial<Parameters<FairQueue["begin"]>[0]> = {}) {
    const answer = await this.queue.begin({ host: "h", hostname: "h", bucket, waitMs: 1, ...more });
    if (answer.result !== "granted") throw new Error(`expected granted, got ${JSON.stringify(answer)}`);
    return answer;
  }

  async release(slotToken: string, more: object = {}): Promise<void> {
    this.queue.release({ slotToken, ...more });
    await drained();
  }
}

export function tokenOf(followed: { last: PollAnswer | undefined }): string {
  if (followed.last?.result !== "granted") throw new Error(`expected granted, got ${JSON.stringify(followed.last)}`);
  return followed.last.slotToken;
}
