import type { Due } from "slotkeeper/parts";
import type { Decision } from "../decide/decide.ts";
import type { Input, Outcome } from "../inputs.ts";
import type { EngineContext } from "./context.ts";
import { lingerMs, nextMoment, StoreWait } from "./cycle-waits.ts";
import type { Host } from "./host.ts";
import type { Committed, Touched } from "./host-cache.ts";

interface Queued {
  readonly input: Input;
  readonly done: ((outcome: Outcome) => void) | undefined;
}

/** A batch of inputs until it is committed, including repeated decisions after conflicts. */
interface Turn {
  readonly batch: readonly Queued[];
  /** Consecutive refused commits. `refusals` counts those of CYCLE7. */
  conflicts: number;
  refusals: number;
  /** The book was compared with the store in this turn. */
  isCurrent: boolean;
}

/** The state of a turn: it is over, its batch must be decided again, or it waits for the store. */
type Step = "over" | "again" | "waiting";
type Refused = Committed & { readonly isKept: false };

/**
 * The loop of one host at one instance: collect inputs → decide on the cached book → commit → answer.
 *
 * CYCLE1 One decision runs at a time. Inputs that arrive meanwhile are decided together.
 * CYCLE2 No input is answered before its commit, and no note of a decision is reported before.
 * CYCLE3 After a conflict the cycle applies what others committed and decides again with the same inputs.
 * CYCLE4 While the outcome of a commit is unknown, the cycle decides nothing else.
 * CYCLE5 A decision that changes nothing has no commit that proves the book current. So the cycle compares the book
 *   with the store before it answers. `forget` is the exception: no caller waits for it.
 * CYCLE6 An input that changes nothing for a session that waits is committed together with the next input or after a
 *   short delay: an arrival if no slot can be granted and sessions of its line or other instances already wait, and a
 *   release if no session waits and no other instance is alive.
 * CYCLE7 If the store keeps refusing what the book allows (`slots`) or the time of the decision (`clock`), the cycle retries
 *   less and less often, but at least once per poll interval.
 * CYCLE8 If a call has no answer after `SILENT_MS`, it continues, but its sessions get the same answers as during an
 *   outage of the store.
 */
export class Cycle implements Due {
  readonly #host: Host;
  readonly #engine: EngineContext;
  #queue: Queued[] = [];
  /** The number of inputs in the current decision. */
  #undecided = 0;
  #isRunning = false;
  #isWoken = false;
  #isStale = false;
  #isClosed = false;
  /** For the current run: the number of store calls and the start time. */
  #calls = 0;
  #startedAt = 0;
  /** `dueAt` is a time at which the state of the host may change, not the end of the idle time of an unused host. */
  #isAwaited = false;
  #lingersUntil = 0;
  /**
   * When the host was last used, or could not be forgotten: then it is tried again after an idle period. A sweep or new
   * settings are no use.
   */
  #usedAt: number;
  /** Created when first needed: a store in the same process answers immediately. */
  #wait: StoreWait | undefined;
  dueAt = 0;
  agendaAt = -1;

  constructor(host: Host, engine: EngineContext) {
    this.#host = host;
    this.#engine = engine;
    this.#usedAt = engine.time.now();
  }

  /** The number of inputs that the store does not have yet. */
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
    this.#engine.unsent++;
    if (input.kind !== "unspace") this.#usedAt = this.#engine.time.now();
    if (waitMs === 0) {
      this.wake();
      return;
    }
    const until = this.#engine.time.now() + waitMs;
    this.#lingersUntil = isFirst ? until : Math.min(this.#lingersUntil, until);
    this.schedule();
  }

  /** Starts a run, because time, a poll or the store may have changed something. */
  wake(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    if (!this.#isRunning) this.#engine.soon(() => this.#run());
  }

  /** The host is dropped. No timer runs for it any more. */
  close(): void {
    this.#isClosed = true;
    this.#engine.agenda.cancel(this);
    this.#wait?.close();
  }

  /** Other instances have changed the host: read the store before the next decision. */
  refresh(): void {
    this.#isStale = true;
    this.wake();
  }

  /** A commit of another instance has been applied to the book. */
  caughtUp(): void {
    this.#wait?.othersCommitted();
    this.schedule();
  }

  /** Does nothing during a run: the end of the run sets the next time. */
  due(): void {
    if (this.#isRunning) return;
    if (this.#isAwaited) this.wake();
    else if (this.#host.hasPending) {
      this.#usedAt = this.#engine.time.now();
      this.schedule();
    } else if (this.#engine.time.now() < this.#idleAt) this.#engine.agenda.schedule(this, this.#idleAt);
    else this.send({ kind: "forget" }, () => this.#host.drop());
  }

  #run(): void {
    this.#isRunning = true;
    this.#calls = 0;
    this.#startedAt = this.#engine.time.now();
    this.#goOn("over", undefined);
  }

  /**
   * Runs turn after turn until nothing is left to decide or a turn waits for the store. An answer of the store
   * continues here in the same job, so that the next commit is sent before the service writes the answers to this one.
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
    const calls = this.#calls;
    if (calls === 0) return;
    const tookMs = this.#engine.time.now() - this.#startedAt;
    this.#engine.emit({ type: "cycle", host: this.#host.key, calls, tookMs });
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

  /** Updates the book from the store. */
  async #compare(turn: Turn): Promise<void> {
    const { cache } = this.#host;
    this.#isStale = false;
    this.#calls++;
    this.#host.changed(await this.#store().untilAnswered("read", cache.sync(), () => cache.sync()));
    turn.isCurrent = true;
    this.#goOn("again", turn);
  }

  /** Another instance committed first, or the store refused. The book already has the commits of the others. */
  async #yieldTo({ reason, touched }: Refused, turn: Turn): Promise<void> {
    turn.conflicts++;
    turn.isCurrent = true;
    this.#host.changed(touched);
    if (reason !== "reserved") turn.refusals = reason === "conflict" ? 0 : turn.refusals + 1;
    await this.#store().afterRefusal(reason, turn.refusals);
    this.#goOn("again", turn);
  }

  #answer(batch: readonly Queued[], { outcomes, notes }: Decision, touched: Touched): void {
    this.#undecided = 0;
    this.#engine.unsent -= batch.length;
    for (const note of notes) this.#host.note(note);
    this.#host.changed(touched);
    batch.forEach(({ done }, at) => done?.(outcomes[at] as Outcome));
    this.#host.answered();
  }

  #store(): StoreWait {
    this.#wait ??= new StoreWait(this.#host, this.#engine);
    return this.#wait;
  }

  /** Sets the next time at which the state of the host may change without an input. */
  schedule(): void {
    if (this.#isRunning || this.#isWoken || this.#isClosed) return;
    const { agenda } = this.#engine;
    const isLingering = this.#queue.length > 0;
    if (this.#host.cache.book.canGrant && this.#queue.some(({ input }) => input.kind === "arrive")) {
      this.wake();
      return;
    }
    const next = nextMoment(this.#host, this.#engine);
    const at = isLingering ? Math.min(next ?? Number.POSITIVE_INFINITY, this.#lingersUntil) : next;
    this.#isAwaited = at !== undefined;
    if (at !== undefined) agenda.schedule(this, at);
    else if (this.#host.hasPending) agenda.cancel(this);
    else this.#awaitUse();
  }

  /** If the host is still unused at this time, it may be forgotten. */
  get #idleAt(): number {
    return this.#usedAt + this.#engine.options.idleMs;
  }

  /**
   * Leaves an earlier time as it is; `due` then sets the next one. Otherwise a busy host would move its timer with
   * every cycle.
   */
  #awaitUse(): void {
    if (this.agendaAt === -1 || this.dueAt > this.#idleAt) this.#engine.agenda.schedule(this, this.#idleAt);
  }
}
