/**
 * Runs the real code of several threads in every order. `Atomics` is replaced by an object that stops a thread before
 * each access to shared memory; a thread is brought back to where it was by running it again and feeding it the results
 * it has seen (so a program must depend on nothing else). Depth first, each state once: a state is the memory, what each
 * thread has read, and who sleeps.
 *
 * A step ends before the next access that another thread can observe. Words that only the owner of the desk touches, and
 * cells that are not pushed yet, are no reason to stop. The thread that may die (the victim) can do so before each single
 * access, those included.
 */
import { Attachment } from "../../src/threads/attachment.ts";
import {
  CLOSED_AT,
  DEATHS,
  DESK,
  GATE,
  GONE,
  GRANTED,
  HOLDERS,
  isPending,
  isTag,
  kindOf,
  Memory,
  OWNERS,
  type Sizes,
  WANT,
} from "../../src/threads/memory.ts";

type Result = number | bigint | string;

export interface Actor {
  readonly attachment: Attachment;
  /** This thread's time. Moves past every timeout when a wait of this thread timed out. */
  readonly now: () => number;
}

export interface Scenario {
  readonly sizes: Sizes;
  readonly programs: readonly ((actor: Actor) => void)[];
  /** This thread may die before any of its accesses. */
  readonly victim?: number;
  /** This thread begins when the victim is dead, and only then. */
  readonly reaper?: number;
  readonly maxRounds?: number;
  /** At most this many switches away from a thread that could have gone on. Default: all of them. */
  readonly maxPreemptions?: number;
  readonly startAt?: readonly number[];
  /** Called in every state in which nothing can move any more. */
  readonly atEnd?: (memory: Memory, statuses: readonly Status[]) => void;
}

type Status = "ready" | "sleeping" | "done" | "dead" | "unborn";

interface ThreadState {
  readonly status: Status;
  readonly history: readonly Result[];
  readonly hash: number;
  /** The word it sleeps on, and whether it may give up. */
  readonly sleepsOn: number;
  readonly mayTimeOut: boolean;
  /** The result of a wait that ended, to be fed next. */
  readonly woken: string | undefined;
}

interface State {
  /** Of those touched so far; the others are as at the start. */
  readonly words: readonly number[];
  readonly threads: readonly ThreadState[];
  readonly arrivals: readonly number[];
  readonly last: number;
  readonly preemptions: number;
}

const pause = new Error("The thread is stopped here");
const real = Atomics;
/** Past every timeout, and before any renewed deadline. */
const PATIENT = 1e6;

export interface Explored {
  readonly states: number;
  readonly ends: number;
}

export function explore(scenario: Scenario): Explored {
  return new Explorer(scenario).run();
}

class Explorer {
  readonly #scenario: Scenario;
  readonly #memory: Memory;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #proxy: Int32Array<SharedArrayBuffer>;
  /** The words written so far, in the order of their first writing, and what they were at the start. */
  readonly #touched = new Map<number, number>();
  readonly #seen = new Set<string>();
  readonly #waitersAt: number;
  #ends = 0;
  // The state being changed.
  #threads: ThreadState[] = [];
  #arrivals: number[] = [];
  #last = -1;
  #preemptions = 0;
  // The thread being run.
  #self = 0;
  /** How many accesses are left before this thread dies. */
  #toLive = Number.POSITIVE_INFINITY;
  #fed = 0;
  #history: Result[] = [];
  #hasActed = false;
  #timedOut = false;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#memory = Memory.allocate(scenario.sizes, 0);
    this.#words = this.#memory.words;
    scenario.programs.forEach((_, index) => {
      this.#words[this.#memory.thread(index + 1)] = threadIdOf(index) + 1;
    });
    this.#words[OWNERS] = scenario.programs.length;
    this.#waitersAt = this.#memory.state(0);
    // Plain reads stop a thread as well.
    this.#proxy = new Proxy(this.#words, { get: (_, key) => this.#load(Number(key)) });
    Object.defineProperty(this.#memory, "words", { value: this.#proxy });
  }

  run(): Explored {
    const { programs, reaper } = this.#scenario;
    const fresh: ThreadState = {
      status: "ready",
      history: [],
      hash: 0,
      sleepsOn: -1,
      mayTimeOut: false,
      woken: undefined,
    };
    this.#threads = programs.map((_, index) => (index === reaper ? { ...fresh, status: "unborn" } : fresh));
    this.#visit();
    return { states: this.#seen.size, ends: this.#ends };
  }

  #visit(): void {
    const key = this.#key();
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#checkLimit();
    const saved: State = {
      words: Array.from(this.#touched.keys(), (word) => this.#words[word]!),
      threads: [...this.#threads],
      arrivals: [...this.#arrivals],
      last: this.#last,
      preemptions: this.#preemptions,
    };
    let hasMoved = false;
    for (const move of this.#moves()) {
      hasMoved = true;
      move();
      this.#visit();
      this.#restore(saved.words);
      this.#threads = [...saved.threads];
      this.#arrivals = [...saved.arrivals];
      this.#last = saved.last;
      this.#preemptions = saved.preemptions;
    }
    if (!hasMoved) this.#end();
  }

  #restore(words: readonly number[]): void {
    let index = 0;
    for (const [word, atStart] of this.#touched) this.#words[word] = words[index++] ?? atStart;
  }

  #touch(word: number): void {
    if (!this.#touched.has(word)) this.#touched.set(word, this.#words[word]!);
  }

  *#moves(): Generator<() => void> {
    const { maxPreemptions = Number.POSITIVE_INFINITY } = this.#scenario;
    const isPreempting = this.#threads[this.#last]?.status === "ready";
    for (const [index, thread] of [...this.#threads].entries()) {
      const isSwitch = isPreempting && index !== this.#last;
      if (isSwitch && this.#preemptions >= maxPreemptions) continue;
      if (thread.status === "ready") yield () => this.#step(index, thread.woken);
      if (thread.status === "sleeping" && thread.mayTimeOut) yield () => this.#step(index, "timed-out");
      if (index === this.#scenario.victim) yield* this.#deaths(index, thread);
    }
  }

  /** Dying at once, and in the middle of the next step after each of its accesses. */
  *#deaths(index: number, thread: ThreadState): Generator<() => void> {
    if (thread.status === "ready" || thread.status === "sleeping") yield () => this.#kill(index);
    if (thread.status !== "ready") return;
    const life = { isCutShort: true };
    for (let accesses = 1; life.isCutShort; accesses++) {
      yield () => {
        life.isCutShort = this.#isCutShort(accesses, index, thread);
      };
    }
  }

  /** Lets it die after that number of accesses; false if its step was over before. */
  #isCutShort(accesses: number, index: number, thread: ThreadState): boolean {
    this.#toLive = accesses;
    this.#step(index, thread.woken);
    const isCutShort = this.#toLive <= 0;
    this.#toLive = Number.POSITIVE_INFINITY;
    this.#kill(index);
    return isCutShort;
  }

  #kill(index: number): void {
    const { reaper } = this.#scenario;
    this.#threads[index] = { ...this.#threads[index]!, status: "dead" };
    if (reaper !== undefined) this.#threads[reaper] = { ...this.#threads[reaper]!, status: "ready" };
  }

  /** Runs a thread through its next access and up to the one after. */
  #step(index: number, woken: string | undefined): void {
    const thread = this.#threads[index]!;
    if (this.#threads[this.#last]?.status === "ready" && index !== this.#last) this.#preemptions++;
    this.#last = index;
    this.#self = index;
    this.#fed = 0;
    this.#history = [...thread.history];
    if (woken !== undefined) this.#history.push(woken);
    // Waking up is the step: whatever comes next, another may be faster.
    this.#hasActed = woken !== undefined;
    this.#timedOut = false;
    this.#threads[index] = { ...thread, status: "ready", woken: undefined, sleepsOn: -1, mayTimeOut: false };
    const status = this.#runProgram(index);
    const after = this.#threads[index] ?? thread;
    this.#threads[index] = {
      ...after,
      status: after.status === "sleeping" ? "sleeping" : status,
      history: this.#history,
      hash: hashOf(thread.hash, this.#history, thread.history.length),
    };
  }

  #runProgram(index: number): Status {
    const startAt = this.#scenario.startAt?.[index] ?? 0;
    const now = () => startAt + (this.#timedOut ? PATIENT : 0);
    const identity = { threadId: threadIdOf(index), owner: index + 1 };
    globalThis.Atomics = this.#atomics;
    try {
      const attachment = new Attachment(this.#memory, identity, { now, wallNow: now }, this.#scenario.maxRounds);
      this.#scenario.programs[index]!({ attachment, now });
      return "done";
    } catch (thrown) {
      if (thrown !== pause) throw thrown;
      return "ready";
    } finally {
      globalThis.Atomics = real;
    }
  }

  /** Every access goes through here: fed from the past, done now, or a reason to stop. */
  #access(word: number, act: () => Result): Result {
    if (this.#fed < this.#history.length) return this.#feed();
    if (this.#toLive <= 0 || (this.#hasActed && this.#isPublic(word))) throw pause;
    this.#toLive--;
    this.#hasActed = true;
    const result = act();
    this.#history.push(result);
    this.#fed++;
    return result;
  }

  #feed(): Result {
    const result = this.#history[this.#fed++]!;
    if (result === "timed-out") this.#timedOut = true;
    return result;
  }

  #isPublic(word: number): boolean {
    if (word >= this.#waitersAt) return (word - this.#waitersAt) % 8 === 0;
    if (word >= HOLDERS && word < this.#memory.thread(0)) return true;
    return [GATE, DESK, GONE, DEATHS, CLOSED_AT, WANT].includes(word);
  }

  readonly #atomics = {
    load: (view: unknown, word: number) =>
      view === this.#proxy ? this.#load(word) : this.#access(HOLDERS, () => real.load(this.#memory.longs, word)),
    store: (view: unknown, word: number, value: number | bigint) =>
      view === this.#proxy
        ? this.#access(word, () => this.#write(word, value as number))
        : this.#access(HOLDERS, () => {
            this.#touch(word * 2);
            this.#touch(word * 2 + 1);
            return real.store(this.#memory.longs, word, value as bigint);
          }),
    add: (_: unknown, word: number, value: number) =>
      this.#access(word, () => this.#write(word, this.#words[word]! + value) - value),
    exchange: (_: unknown, word: number, value: number) =>
      this.#access(word, () => {
        const before = this.#words[word]!;
        this.#write(word, value);
        return before;
      }),
    compareExchange: (_: unknown, word: number, from: number, to: number) =>
      this.#access(word, () => {
        const before = this.#words[word]!;
        if (before === from) this.#write(word, to);
        return before;
      }),
    wait: (_: unknown, word: number, value: number, timeoutMs = Number.POSITIVE_INFINITY) => {
      if (this.#fed < this.#history.length) return this.#feed();
      if (this.#hasActed) throw pause;
      if (this.#words[word] !== value) return this.#access(word, () => "not-equal");
      // Once per thread: its clock has moved past everything then.
      const mayTimeOut = timeoutMs !== Number.POSITIVE_INFINITY && !this.#timedOut;
      this.#threads[this.#self] = { ...this.#threads[this.#self]!, status: "sleeping", sleepsOn: word, mayTimeOut };
      throw pause;
    },
    notify: (_: unknown, word: number) =>
      this.#access(word, () => {
        this.#threads = this.#threads.map((thread) =>
          thread.status === "sleeping" && thread.sleepsOn === word
            ? { ...thread, status: "ready", sleepsOn: -1, mayTimeOut: false, woken: "ok" }
            : thread,
        );
        return 0;
      }),
  } as unknown as typeof Atomics;

  #load(word: number): number {
    return this.#access(word, () => this.#words[word]!) as number;
  }

  #write(word: number, value: number): number {
    this.#touch(word);
    this.#words[word] = value;
    if (word === GATE && value > 0) this.#arrivals = [...this.#arrivals.filter((cell) => cell !== value), value];
    const isState = word >= this.#waitersAt && (word - this.#waitersAt) % 8 === 0;
    if (isState && kindOf(value) === GRANTED) this.#checkOrder((word - this.#waitersAt) / 8);
    return value;
  }

  /** DISPATCH3: no waiter that arrived earlier is still waiting. */
  #checkOrder(cell: number): void {
    for (const earlier of this.#arrivals.slice(0, this.#arrivals.indexOf(cell))) {
      const state = this.#words[this.#waitersAt + earlier * 8]!;
      if (isPending(kindOf(state))) throw new Error(`Cell ${cell} was served before cell ${earlier}, which came first`);
    }
    this.#arrivals = this.#arrivals.filter((arrived) => arrived !== cell);
  }

  /** DISPATCH1, in every state. */
  #checkLimit(): void {
    let held = 0;
    for (let cell = 0; cell < this.#memory.maxHolders; cell++) {
      if (isTag(this.#words[this.#memory.holder(cell)]!)) held++;
    }
    // A shrink evicts no holder, hence the larger of the two.
    if (held > Math.max(this.#scenario.sizes.slots, this.#words[WANT]!)) throw new Error(`${held} hold at one time`);
  }

  #end(): void {
    this.#ends++;
    this.#hasActed = false;
    const statuses = this.#threads.map(({ status }) => status);
    if (statuses.includes("sleeping")) throw new Error(`A lost wake-up: ${statuses.join(", ")}`);
    const memory = new Memory(this.#memory.buffer);
    this.#scenario.atEnd?.(memory, statuses);
  }

  #key(): string {
    // In the order in which they were first touched: the same for equal states, but for a few met twice.
    let words = "";
    for (const word of this.#touched.keys()) words += `${this.#words[word]},`;
    // A thread that has ended has no memory.
    const threads = this.#threads.map(({ status, history, hash, sleepsOn, woken }) =>
      status === "done" || status === "dead" ? status : `${status}${history.length}:${hash}${sleepsOn}${woken ?? ""}`,
    );
    const switches = this.#scenario.maxPreemptions === undefined ? "" : `${this.#last}/${this.#preemptions}`;
    return `${words}|${threads.join()}|${this.#arrivals.join()}|${switches}`;
  }
}

export const threadIdOf = (index: number): number => index + 100;

/** Goes on from the hash of the first `from` results. */
function hashOf(hash: number, history: readonly Result[], from: number): number {
  let low = hash % 2 ** 26;
  let high = Math.floor(hash / 2 ** 26);
  for (let index = from; index < history.length; index++) {
    const result = history[index]!;
    const value = typeof result === "number" ? result : typeof result === "string" ? -result.length : Number(result);
    low = (Math.imul(low ^ value, 0x9e_37_79_b1) >>> 3) % 2 ** 26;
    high = (Math.imul(high + value, 0x85_eb_ca_77) >>> 5) % 2 ** 26;
  }
  return high * 2 ** 26 + low;
}
