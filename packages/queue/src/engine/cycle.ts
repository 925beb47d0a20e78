import type { Due } from "../agenda.ts";
import type { Decision } from "../decide/decide.ts";
import type { Input, Outcome } from "../inputs.ts";
import type { EngineContext } from "./context.ts";
import type { CycleHost } from "./cycle-host.ts";
import type { Committed, Touched } from "./host-cache.ts";
import { lingerMs } from "./linger.ts";
import { nextMoment } from "./next-moment.ts";
import { StoreWait } from "./store-wait.ts";

interface Queued {
  readonly input: Input;
  readonly done: ((outcome: Outcome) => void) | undefined;
}

/** A batch on its way to the store, however often others come first. */
interface Turn {
  readonly batch: readonly Queued[];
  /** Commits refused in a row, and of them those for want of a slot. */
  conflicts: number;
  refusals: number;
  /** The book was compared with the store in this turn. */
  isCurrent: boolean;
}

/** What became of a turn: it is over, its batch must be decided again, or the store has not answered yet. */
type Step = "over" | "again" | "waiting";
type Refused = Committed & { readonly isKept: false };

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
  #lingersUntil = 0;
  /** Unused until then, it may be forgotten. */
  #restsUntil = 0;
  /** Made when first needed: a store of this process answers at once. */
  #wait: StoreWait | undefined;
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
    this.#wait?.close();
  }

  /** Others have changed the host: read before deciding. */
  refresh(): void {
    this.#isStale = true;
    this.wake();
  }

  /** What another instance committed has been applied. */
  caughtUp(): void {
    this.#wait?.othersCommitted();
    this.schedule();
  }

  /** While it runs, its moment means nothing: it sets the next one at the end. */
  onDue(): void {
    if (this.#isRunning) return;
    if (this.#isAwaited) this.wake();
    else if (this.#host.isRemembered) this.schedule();
    else if (this.#engine.time.now() < this.#restsUntil) this.#engine.agenda.schedule(this, this.#restsUntil);
    else this.send({ kind: "forget" }, () => this.#host.drop());
  }

  #run(): void {
    this.#isRunning = true;
    this.#calls = 0;
    this.#startedAt = this.#engine.time.now();
    this.#goOn("over", undefined);
  }

  /**
   * Turn after turn, until nothing is left to decide or the store must be waited for. The store's answer continues here in the same
   * job: the next commit leaves before the service writes the answers to this one.
   */
  #goOn(step: Step, present: Turn | undefined): void {
    let turn = present;
    for (let became = step; became !== "waiting"; became = this.#step(turn)) {
      if (became === "over") turn = this.#nextTurn();
      if (turn === undefined) {
        this.#rest();
        return;
      }
    }
  }

  #nextTurn(): Turn | undefined {
    if (!this.#isWoken) return undefined;
    this.#isWoken = false;
    const batch = this.#queue;
    this.#queue = [];
    this.#undecided = batch.length;
    return { batch, conflicts: 0, refusals: 0, isCurrent: false };
  }

  /** Decides a batch and commits it, once. */
  #step(turn: Turn): Step {
    if (this.#isStale) {
      void this.#compare(turn);
      return "waiting";
    }
    const { cache } = this.#host;
    const decision = this.#decide(turn.batch);
    if (!decision.isForgotten && !cache.isChanged) return this.#answerUnchanged(turn, decision);
    this.#calls++;
    const answer = cache.commit(decision, turn.conflicts);
    if (answer instanceof Promise) {
      void this.#commitLater(turn, decision, answer);
      return "waiting";
    }
    this.#host.storeAnswered(true);
    return this.#committed(turn, decision, answer);
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

  /** CYCLE5. */
  #answerUnchanged({ batch, isCurrent }: Turn, decision: Decision): Step {
    this.#host.cache.undo();
    this.#isStale = !isCurrent && batch.some(({ input }) => input.kind !== "forget");
    if (this.#isStale) return "again";
    this.#answer(batch, decision, []);
    return "over";
  }

  async #commitLater(turn: Turn, decision: Decision, first: Promise<Committed>): Promise<void> {
    const again = () => this.#host.cache.commit(decision, turn.conflicts);
    const committed = await this.#store().untilAnswered("commit", first, again);
    this.#goOn(this.#committed(turn, decision, committed), turn);
  }

  #committed(turn: Turn, decision: Decision, committed: Committed): Step {
    if (!committed.isKept) {
      void this.#yieldTo(committed, turn);
      return "waiting";
    }
    this.#answer(turn.batch, decision, committed.touched);
    return "over";
  }

  /** Brings the book up to the store's. */
  async #compare(turn: Turn): Promise<void> {
    const { cache } = this.#host;
    this.#isStale = false;
    this.#calls++;
    this.#host.settle(await this.#store().untilAnswered("read", cache.sync(), () => cache.sync()));
    turn.isCurrent = true;
    this.#goOn("again", turn);
  }

  /** Others came first, or the store refused: what they committed is in the book now. */
  async #yieldTo({ reason, touched }: Refused, turn: Turn): Promise<void> {
    turn.conflicts++;
    turn.isCurrent = true;
    this.#host.settle(touched);
    if (reason !== "reserved") turn.refusals = reason === "slots" ? turn.refusals + 1 : 0;
    await this.#store().afterRefusal(reason, turn.refusals);
    this.#goOn("again", turn);
  }

  #answer(batch: readonly Queued[], { outcomes, notes }: Decision, touched: Touched): void {
    this.#undecided = 0;
    this.#host.settle(touched);
    batch.forEach(({ done }, at) => done?.(outcomes[at] as Outcome));
    // Last: a session that ended in the decision it arrived in has begun by now.
    for (const note of notes) this.#host.note(note);
  }

  #store(): StoreWait {
    this.#wait ??= new StoreWait(this.#host, this.#engine);
    return this.#wait;
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
