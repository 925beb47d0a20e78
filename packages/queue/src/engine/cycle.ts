import type { Due } from "../agenda.ts";
import type { BatchReply, WaiterBatch } from "../store/slot-store.ts";
import { batchOf, type Selection, select, takeBack } from "./batch.ts";
import type { EngineContext } from "./context.ts";
import { heard } from "./first-news.ts";
import type { HostQueue } from "./host-queue.ts";
import type { Sessions } from "./sessions.ts";
import { applyReply } from "./verdicts.ts";

/**
 * The one loop of a host: nothing else grants.
 *
 * C1 at most one runs at a time; what happens meanwhile makes it go round once more. C2 it goes on in the same turn as
 * long as the store has a free slot and somebody may be tried (work conservation). C3 while anybody waits it runs at
 * least every `pollIntervalMs`, and at the moment the next slot or deny window ends. C4 it holds no lock: sessions end,
 * are canceled and polled while the store decides, and the answer is checked against what they are by then. C5 a store
 * that failed is asked again at the next interval, not at the next event.
 */
export class Cycle implements Due {
  readonly #host: HostQueue;
  readonly #engine: EngineContext;
  readonly #sessions: Sessions;
  readonly #onIdle: (host: HostQueue) => void;
  #isRunning = false;
  #isWanted = false;
  #retryAt = Number.NEGATIVE_INFINITY;
  dueAt = 0;
  agendaIndex = -1;

  constructor(host: HostQueue, engine: EngineContext, sessions: Sessions, onIdle: (host: HostQueue) => void) {
    this.#host = host;
    this.#engine = engine;
    this.#sessions = sessions;
    this.#onIdle = onIdle;
  }

  /** Runs soon and not now, so that what arrives together is decided together. */
  wake(): void {
    this.#isWanted = true;
    if (this.#isRunning || this.#engine.clock.now() < this.#retryAt) return;
    this.#isRunning = true;
    this.#engine.soon(this.#start);
  }

  /** A moment has become known at which it should run. */
  reschedule(): void {
    if (!this.#isRunning) this.#schedule();
  }

  /** The backstop: looks for slots and places that were freed without this instance hearing of it. */
  onDue(): void {
    if (this.#isRunning) return;
    this.#host.forgetIdle(this.#engine.clock.now());
    if (this.#host.sessions === 0 && this.#host.pending === 0) {
      this.#onIdle(this.#host);
      return;
    }
    this.#host.offers = Math.max(this.#host.offers, 1);
    this.#host.lookFor = this.#host.policy.slots;
    this.#retryAt = Number.NEGATIVE_INFINITY;
    if (this.#host.pending > 0) this.wake();
    else this.#schedule();
  }

  readonly #start = (): void => void this.#run();

  async #run(): Promise<void> {
    const { clock } = this.#engine;
    const startedAt = clock.now();
    const callsBefore = this.#host.calls;
    while (this.#isWanted && this.#engine.clock.now() >= this.#retryAt) {
      this.#isWanted = false;
      while (await this.#once());
    }
    this.#isRunning = false;
    this.#schedule();
    const calls = this.#host.calls - callsBefore;
    if (calls === 0) return;
    this.#engine.emit({ type: "cycle", host: this.#host.key, calls, tookMs: clock.now() - startedAt });
  }

  /** One call to the store. True: another is worth making now. */
  async #once(): Promise<boolean> {
    const host = this.#host;
    const now = this.#engine.clock.now();
    this.#endDenials(now);
    host.passEnd(now);
    this.#sessions.throttleAll(host, now);
    if (host.pending === 0) return false;
    const selection = select(host, this.#engine, now);
    const isTry = selection.registers.length === 0;
    const sessions = isTry ? selection.tries : selection.registers;
    if (sessions.length === 0) return false;
    if (!isTry) host.unsure.unshift(...selection.tries.splice(0));
    const batch = batchOf(host, this.#engine, sessions, selection.isWeighted);
    try {
      const reply = await this.#ask(batch, isTry);
      host.isStoreDown = false;
      return applyReply(host, this.#engine, this.#sessions, {
        sessions,
        reply,
        isTry,
        isWeighted: selection.isWeighted,
        askedAt: now,
      });
    } catch (error) {
      this.#failed(selection, isTry ? "tryAcquire" : "register", error);
      return false;
    }
  }

  #ask(batch: WaiterBatch, isTry: boolean): Promise<BatchReply> {
    const host = this.#host;
    const { store } = this.#engine;
    host.calls++;
    host.freedMeanwhile = 0;
    host.isCalling = true;
    try {
      return isTry ? store.tryAcquire(batch) : store.register(batch);
    } finally {
      host.isCalling = false;
    }
  }

  #failed(selection: Selection, operation: string, error: unknown): void {
    const now = this.#engine.clock.now();
    this.#host.isStoreDown = true;
    this.#retryAt = now + this.#engine.options().pollIntervalMs;
    takeBack(this.#host, selection, now);
    for (const session of [...selection.tries, ...selection.registers]) {
      this.#sessions.withdrawAgain(session);
      heard(session, this.#engine.agenda);
    }
    this.#engine.emit({ type: "store-error", host: this.#host.key, operation, error });
  }

  #endDenials(now: number): void {
    for (const bucket of this.#host.denied.takeEnded(now)) this.#host.refresh(bucket);
    for (const { name } of this.#host.denied.takeUntold()) {
      const { key } = this.#host;
      this.#engine.emit({
        type: "probe-decision",
        host: key,
        bucket: name,
        isAllowed: false,
        reason: "ip_deny_window",
      });
    }
  }

  /** It becomes half open after one window, and closes after two without an error. */
  #breakerMovesAt(now: number): number | undefined {
    const { breaker, breakerAt, policy } = this.#host;
    if (breaker.phase === "closed") return undefined;
    const openedAt = breakerAt - breaker.openForMs;
    return [openedAt + policy.breaker.openMs, openedAt + 2 * policy.breaker.openMs].find((at) => at > now);
  }

  #schedule(): void {
    const { clock, agenda } = this.#engine;
    const { idleMs, pollIntervalMs } = this.#engine.options();
    const now = clock.now();
    if (this.#host.pending === 0) {
      agenda.schedule(this, now + idleMs);
      return;
    }
    const soon = [this.#host.freeAt, this.#host.denied.nextEndAt, this.#breakerMovesAt(now), now + pollIntervalMs];
    const next = Math.min(...soon.filter((at) => at !== undefined));
    agenda.schedule(this, Math.max(next, this.#retryAt, now + SHORTEST_PAUSE_MS));
  }
}

/** A moment that has come but changed nothing must not spin the loop. */
const SHORTEST_PAUSE_MS = 1;
