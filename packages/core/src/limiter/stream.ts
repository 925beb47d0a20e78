/**
 * Items through a gate, as an async iterable of the results.
 *
 * STREAM1  Bounded: items that were read but whose results were not yet taken are at most `gate.capacity + readAhead`, and
 *     nothing is read before the first result is asked for. A slow consumer therefore slows the source down.
 * STREAM2  At most one read of the source at a time. Each item runs through `gate.run`, so the gate's order and limits hold.
 * STREAM3  Ordered: results come in the order of the items. Unordered: as they come.
 * STREAM4  It ends once: by the end of the source, the first failure (of the source, of `fn`, of the gate), the signal, or the
 *     consumer that stops. Except at the natural end, the source is closed and the signal given to `fn` aborts at once;
 *     work whose result is not read may fail in silence.
 */
import { abortSignal, boolean, callback, check, checkOptions, kind, numberFrom, type Rules } from "../options.ts";
import { type Reader, readerOf, type Source } from "./source.ts";

/** A `Semaphore`, a `Limiter`, or whatever else runs work in slots. */
export interface StreamGate<Slot, Options> {
  readonly capacity: number;
  run<T>(work: (slot: Slot) => T | Promise<T>, options?: Options): Promise<Awaited<T>>;
}

/** What `stream` passes to the function for each item, after the item and its index. */
export interface StreamContext<Slot> {
  /** Aborts when the result is no longer wanted. */
  readonly signal: AbortSignal;
  readonly slot: Slot;
}

/** Options of `stream`. */
export interface StreamOptions<Item = unknown, Options = object> {
  /** Results in the order of the items. @defaultValue true */
  ordered?: boolean | undefined;
  /** How many more items than slots may be read ahead. @defaultValue 0 */
  readAhead?: number | undefined;
  /** Ends the stream: the iterator rejects with the signal's own reason. */
  signal?: AbortSignal | undefined;
  /** What to ask the gate for, for each item: a cost, a key, a level. */
  acquire?: ((item: Item, index: number) => Omit<Options, "signal">) | undefined;
}

const RULES: Rules<StreamOptions> = {
  ordered: boolean,
  readAhead: numberFrom(0),
  signal: abortSignal,
  acquire: callback,
};
const GATE = kind(
  "a semaphore or limiter",
  (value) => typeof (value as { run?: unknown } | null | undefined)?.run === "function",
);

type Result<T> = { readonly value: T };

/**
 * Runs `fn` for every item of a source, each in a slot of `gate`, and gives the results as an async iterable. Reads at most
 * the gate's slots plus `readAhead` items ahead of the consumer. When the consumer stops, an item fails or the signal
 * aborts, the source is closed and the signals of work in flight abort.
 *
 * @throws {TypeError} if an argument or option is not what it should be; asynchronously, with what `fn` or the source throws.
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { stream } from "slotkeeper/limiter";
 *
 * const urls = ["https://example.com/1", "https://example.com/2"];
 * const fourAtATime = new Semaphore(4);
 * for await (const status of stream(fourAtATime, urls, async (url, _, { signal }) => (await fetch(url, { signal })).status)) {
 *   console.log(status);
 * }
 * ```
 */
export function stream<Item, T, Slot, Options extends { signal?: AbortSignal | undefined }>(
  gate: StreamGate<Slot, Options>,
  source: Source<Item>,
  fn: (item: Item, index: number, context: StreamContext<Slot>) => T | Promise<T>,
  options: StreamOptions<Item, Options> = {},
): AsyncIterableIterator<Awaited<T>> {
  checkOptions(options, RULES as Rules<typeof options>);
  check("fn", callback, fn);
  check("gate", GATE, gate);
  return new GatedStream(gate, source, fn, options);
}

class GatedStream<Item, T, Slot, Options extends { signal?: AbortSignal | undefined }>
  implements AsyncIterableIterator<Awaited<T>>
{
  readonly #gate: StreamGate<Slot, Options>;
  readonly #fn: (item: Item, index: number, context: StreamContext<Slot>) => T | Promise<T>;
  readonly #options: StreamOptions<Item, Options>;
  readonly #reader: Reader<Item>;
  readonly #controller = new AbortController();
  /** Of items read, by their turn: the index, or the order in which they came. Taken from the front. */
  readonly #results = new Map<number, Result<Awaited<T>>>();
  #read = 0;
  #arrived = 0;
  #taken = 0;
  #isBegun = false;
  #isReading = false;
  /** The source has ended by itself. */
  #isRead = false;
  #isOver = false;
  #failure: { error: unknown } | undefined;
  /** Who asked for a result that is not there yet. */
  readonly #asking: {
    resolve(result: IteratorResult<Awaited<T>>): void;
    reject(error: unknown): void;
  }[] = [];

  constructor(
    gate: StreamGate<Slot, Options>,
    source: Source<Item>,
    fn: (item: Item, index: number, context: StreamContext<Slot>) => T | Promise<T>,
    options: StreamOptions<Item, Options>,
  ) {
    this.#gate = gate;
    this.#fn = fn;
    this.#options = options;
    this.#reader = readerOf(source);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Awaited<T>>> {
    return new Promise((resolve, reject) => {
      if (!this.#isBegun) this.#begin();
      this.#asking.push({ resolve, reject });
      this.#answer();
      void this.#fill();
    });
  }

  /** Not before: a stream that is never asked leaves nothing behind. */
  #begin(): void {
    this.#isBegun = true;
    const { signal } = this.#options;
    if (this.#isOver) return;
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The consumer stops. */
  async return(): Promise<IteratorResult<Awaited<T>>> {
    await this.#end();
    this.#results.clear();
    this.#taken = this.#read;
    this.#answer();
    return { done: true, value: undefined };
  }

  readonly #onAbort = (): void => this.#fail(this.#options.signal?.reason);

  /** Reads and starts items for as long as there is room. */
  async #fill(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    while (!this.#isOver && this.#hasRoom()) {
      try {
        const pending = this.#reader.next();
        const result = pending instanceof Promise ? await pending : pending;
        if (result.done) this.#isRead = true;
        else if (!this.#isOver) this.#start(result.value, this.#read++);
      } catch (error) {
        // A source that fails to give an item has ended.
        this.#isRead = true;
        this.#fail(error);
      }
    }
    this.#isReading = false;
    if (this.#isRead) this.#answer();
  }

  #hasRoom(): boolean {
    const { readAhead = 0 } = this.#options;
    const isAsked = this.#asking.length > 0 || this.#taken > 0;
    return !this.#isRead && isAsked && this.#read - this.#taken < this.#gate.capacity + readAhead;
  }

  #start(item: Item, index: number): void {
    const { ordered = true } = this.#options;
    this.#run(item, index).then(
      (value) => {
        this.#results.set(ordered ? index : this.#arrived++, { value });
        this.#answer();
      },
      (error: unknown) => this.#fail(error),
    );
  }

  /** `async`, so that an `acquire` that throws fails the item and not the source. */
  async #run(item: Item, index: number): Promise<Awaited<T>> {
    const { signal } = this.#controller;
    const asked = { ...this.#options.acquire?.(item, index), signal };
    return this.#gate.run((slot) => this.#fn(item, index, { signal, slot }), asked as unknown as Options);
  }

  /** Gives results to those who ask, then the failure once, then the end. */
  #answer(): void {
    while (this.#asking.length > 0) {
      const result = this.#results.get(this.#taken);
      const isDone = this.#isOver || (this.#isRead && this.#taken === this.#read);
      if (this.#failure === undefined && result === undefined && !isDone) return;
      const asking = this.#asking.shift();
      if (this.#failure !== undefined) {
        const { error } = this.#failure;
        this.#failure = undefined;
        asking?.reject(error);
      } else if (result !== undefined && !this.#isOver) {
        this.#results.delete(this.#taken++);
        asking?.resolve({ done: false, value: result.value });
        void this.#fill();
      } else {
        this.#end().catch(() => {});
        asking?.resolve({ done: true, value: undefined });
      }
    }
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#failure = { error };
    // That the source cannot be closed either is nothing to add.
    this.#end().catch(() => {});
    this.#answer();
  }

  /** Closes the source, unless that has ended by itself, and aborts what is in flight. */
  async #end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#taken < this.#read) this.#controller.abort(this.#failure?.error);
    if (!this.#isRead) await this.#reader.stop();
  }
}
