import type { Due } from "../agenda.ts";
import type { Decision } from "../decide/decide.ts";
import type { Input, Outcome } from "../inputs.ts";
import { RESERVED_MS } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import type { CycleHost } from "./cycle-host.ts";
import type { Committed, Touched } from "./host-cache.ts";
import { lingerMs } from "./linger.ts";
import { nextMoment } from "./next-moment.ts";

interface Queued {
  readonly input: Input;
  readonly done: ((outcome: Outcome) => void) | undefined;
}

/** A batch's commits so far: those refused in a row, of them for want of a slot, and whether the book is the store's. */
interface Tries {
  conflicts: number;
  refusals: number;
  isCurrent: boolean;
}

type Refused = Committed & { readonly isKept: false };

/** From when on answers say that a session waits for the store. */
const SILENT_MS = 1_000;
/** How long the second `slots` refusal in a row is waited out. Each further one doubles it, up to the poll interval. */
const REFUSED_MS = 20;

/**
 * One host's loop at one instance: collect inputs → decide on the cached book → commit → answer.
 *
 * CYCLE1 one decision at a time: what arrives meanwhile is decided together with what else arrived
 * CYCLE2 nothing is answered before its commit
 * CYCLE3 a conflict applies what others committed and decides again, from the same inputs
 * CYCLE4 while an outcome is unknown nothing else is decided
 * CYCLE5 an outcome that changes nothing, and so has no commit to prove it, is given only by a book just compared with the store;
 *    but for `forget`, for which no caller waits
 * CYCLE6 where no slot is free and its bucket or other instances wait already, an arrival is committed with what comes next, or a
 *    little later
 * CYCLE7 a store that goes on refusing what the book allows (`slots`) is asked less and less often, at least every poll interval
 * CYCLE8 a call that has no answer after `SILENT_MS` goes on, but its sessions are answered as while the store is away
 */
export class Cycle implements Due {
  readonly #host: CycleHost;
  readonly #engine: EngineContext;
  #queue: Queued[] = [];
  /** Inputs of the decision that is being made. */
  #undecided = 0;
  #isRunning = false;
  #isWoken = false;
  #isStale = false;
  #isClosed = false;
  /** Of the present run: calls of the store, and since when. */
  #calls = 0;
  #startedAt = 0;
  /** Its next moment is one at which time may change something, not the end of patience with an unused host. */
  #isAwaited = false;
  #retry: (() => void) | undefined;
  #lingersUntil = 0;
  /** A call is under way: its next moment is the end of patience with it. */
  #isWatching = false;
  /** Unused until then, it may be forgotten. */
  #restsUntil = 0;
  /** It waits for a commit that the store has reserved for another instance. */
  #isYielding = false;
  dueAt = 0;
  agendaIndex = -1;

  constructor(host: CycleHost, engine: EngineContext) {
    this.#host = host;
    this.#engine = engine;
  }

  /** Inputs that the store does not have yet. */
  get unsent(): number {
    return this.#queue.length + this.#undecided;
  }

  get isBusy(): boolean {
    return this.#isRunning || this.#isWoken;
  }

  send(input: Input, done?: (outcome: Outcome) => void): void {
    const waitMs = lingerMs(input, this.#host.cache.book, this.#engine);
    const isFirst = this.#queue.length === 0;
    this.#queue.push({ input, done });
    if (waitMs === 0) {
      this.wake();
      return;
    }
    const until = this.#engine.time.now() + waitMs;
    this.#lingersUntil = isFirst ? until : Math.min(this.#lingersUntil, until);
    this.schedule();
  }

  /** Something may have changed: time, a poll, the store. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    if (!this.#isRunning) this.#engine.soon(() => this.#run());
  }

  /** The host is dropped: no time matters to it any more. */
  close(): void {
    this.#isClosed = true;
    this.#engine.agenda.cancel(this);
  }

  /** Others have changed the host: read before deciding. */
  refresh(): void {
    this.#isStale = true;
    this.wake();
  }

  /** What another instance committed has been applied. */
  caughtUp(): void {
    if (!this.#isYielding) this.schedule();
    else {
      this.#engine.agenda.cancel(this);
      this.onDue();
    }
  }

  onDue(): void {
    if (this.#retry !== undefined) {
      const retry = this.#retry;
      this.#retry = undefined;
      retry();
    } else if (this.#isWatching) this.#host.storeAnswered(false);
    else if (this.#isAwaited) this.wake();
    else if (this.#host.isRemembered) this.schedule();
    else if (this.#engine.time.now() < this.#restsUntil) this.#engine.agenda.schedule(this, this.#restsUntil);
    else this.send({ kind: "forget" }, () => this.#host.drop());
  }

  #run(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#calls = 0;
    this.#startedAt = this.#engine.time.now();
    this.#next();
  }

  /**
   * Decides what was collected. The plain case, a commit that the store accepts, runs without `async` functions: they were a
   * quarter of the bytes that an idle host's cycle allocated on the memory store.
   */
  #next(): void {
    if (!this.#isWoken) {
      this.#rest();
      return;
    }
    this.#isWoken = false;
    const batch = this.#queue;
    this.#queue = [];
    this.#undecided = batch.length;
    const decision = this.#isStale ? undefined : this.#decide(batch);
    if (decision !== undefined && this.#isToCommit(decision)) this.#commitPlainly(batch, decision);
    else void this.#turn(batch, decision);
  }

  #rest(): void {
    this.#isRunning = false;
    this.schedule();
    const { time, emit } = this.#engine;
    const calls = this.#calls;
    if (calls > 0) emit({ type: "cycle", host: this.#host.key, calls, tookMs: time.now() - this.#startedAt });
  }

  #decide(batch: readonly Queued[]): Decision {
    const inputs = batch.map(({ input }) => input);
    return this.#host.cache.decide(inputs, this.#host.decideContext());
  }

  #isToCommit({ isForgotten }: Decision): boolean {
    return isForgotten || this.#host.cache.isChanged;
  }

  #commitPlainly(batch: readonly Queued[], decision: Decision): void {
    this.#watched(this.#host.cache.commit(decision, 0)).then(
      (committed) => {
        this.#host.storeAnswered(true);
        this.#calls++;
        if (committed.isKept) {
          this.#answer(batch, decision, committed.touched);
          this.#next();
        } else void this.#turn(batch, decision, committed);
      },
      (error) => void this.#failed("commit", error).then(() => this.#turn(batch, decision)),
    );
  }

  /**
   * Decides one batch and commits it, however often others come first. `first`: it was decided, and its commit, if it was sent, is
   * not answered; with `refused` it is.
   */
  async #turn(batch: readonly Queued[], first: Decision | undefined, refused?: Refused): Promise<void> {
    const { cache } = this.#host;
    const tries: Tries = { conflicts: 0, refusals: 0, isCurrent: false };
    if (refused !== undefined) await this.#yieldTo(refused, tries);
    for (let decision = refused === undefined ? first : undefined; ; decision = undefined) {
      if (decision === undefined && this.#isStale) {
        await this.#compare();
        tries.isCurrent = true;
      }
      const made = decision ?? this.#decide(batch);
      if (!this.#isToCommit(made)) {
        cache.undo();
        this.#isStale = !tries.isCurrent && batch.some(({ input }) => input.kind !== "forget");
        if (this.#isStale) continue;
        this.#answer(batch, made, []);
        break;
      }
      const committed = await this.#untilAnswered("commit", () => cache.commit(made, tries.conflicts));
      if (committed.isKept) {
        this.#answer(batch, made, committed.touched);
        break;
      }
      await this.#yieldTo(committed, tries);
    }
    this.#next();
  }

  /** Brings the book up to the store's. */
  async #compare(): Promise<void> {
    this.#isStale = false;
    this.#host.settle(await this.#untilAnswered("read", () => this.#host.cache.sync()));
  }

  /** Others came first, or the store refused: what they committed is in the book now. */
  async #yieldTo({ reason, touched }: Refused, tries: Tries): Promise<void> {
    tries.conflicts++;
    tries.isCurrent = true;
    this.#host.settle(touched);
    if (reason === "reserved") await this.#yield();
    else if (reason !== "slots") tries.refusals = 0;
    else if (++tries.refusals > 1) await this.#pause(this.#refusedMs(tries.refusals));
  }

  /** Ends with the other instance's commit where this one is notified of it. */
  async #yield(): Promise<void> {
    this.#isYielding = true;
    await this.#pause(RESERVED_MS / 2);
    this.#isYielding = false;
  }

  /** CYCLE7. */
  #refusedMs(refusals: number): number {
    return Math.min(REFUSED_MS * 2 ** (refusals - 2), this.#engine.options().pollIntervalMs);
  }

  #answer(batch: readonly Queued[], { outcomes, notes }: Decision, touched: Touched): void {
    this.#undecided = 0;
    this.#host.settle(touched);
    batch.forEach(({ done }, at) => done?.(outcomes[at] as Outcome));
    // Last: a session that ended in the decision it arrived in has begun by now.
    for (const note of notes) this.#host.note(note);
  }

  /** CYCLE4: asks again every poll interval until the store has answered. */
  async #untilAnswered<T>(operation: string, call: () => Promise<T>): Promise<T> {
    this.#calls++;
    for (;;) {
      try {
        const answer = await this.#watched(call());
        this.#host.storeAnswered(true);
        return answer;
      } catch (error) {
        await this.#failed(operation, error);
      }
    }
  }

  /** CYCLE8. A store of this process answers or fails at once. */
  #watched<T>(call: Promise<T>): Promise<T> {
    const { store, agenda, time } = this.#engine;
    if (store.clock !== "shared") return call;
    this.#isWatching = true;
    agenda.schedule(this, time.now() + SILENT_MS);
    return call.finally(() => {
      this.#isWatching = false;
    });
  }

  #failed(operation: string, error: unknown): Promise<void> {
    this.#engine.emit({ type: "store-error", host: this.#host.key, operation, error });
    this.#host.storeAnswered(false);
    return this.#pause(this.#engine.options().pollIntervalMs);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#retry = resolve;
      this.#engine.agenda.schedule(this, this.#engine.time.now() + ms);
    });
  }

  /** Sets the next moment at which time alone may change something. */
  schedule(): void {
    if (this.#isRunning || this.#isWoken || this.#isClosed) return;
    const { agenda, time, options } = this.#engine;
    const isLingering = this.#queue.length > 0;
    if (isLingering && this.#host.cache.book.free > 0) {
      this.wake();
      return;
    }
    const next = nextMoment(this.#host, this.#engine);
    const at = isLingering ? Math.min(next ?? Number.POSITIVE_INFINITY, this.#lingersUntil) : next;
    this.#isAwaited = at !== undefined;
    if (at !== undefined) agenda.schedule(this, at);
    else if (this.#host.hasPending) agenda.cancel(this);
    else this.#awaitUse(time.now() + options().idleMs);
  }

  /** An earlier moment is left as it is, and set anew when it comes: a busy host would move it with every cycle. */
  #awaitUse(until: number): void {
    this.#restsUntil = until;
    if (this.agendaIndex === -1 || this.dueAt > until) this.#engine.agenda.schedule(this, until);
  }
}
