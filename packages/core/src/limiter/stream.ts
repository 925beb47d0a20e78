/**
 * Runs the items of a source through a gate and returns the results as an async iterable.
 *
 * STREAM1  Bounded: at most `gate.capacity + readAhead` items are read whose results were not taken yet, and nothing is
 *     read before the consumer asks for the first result. A slow consumer therefore slows the source down.
 * STREAM2  At most one read of the source runs at a time. Each item runs through `gate.run`, so the order and limits of
 *     the gate apply.
 * STREAM3  Ordered: results come in the order of the items. Unordered: results come as soon as they are ready.
 * STREAM4  The stream ends once: at the end of the source, at the first failure (of the source, of `fn`, of the gate),
 *     by the signal, or when the consumer stops. Except at the end of the source, the source is closed and the signal
 *     given to `fn` aborts at once. Failures of work whose result is not read are ignored.
 */
import { abortSignal, boolean, callback, check, kind, numberFrom, type Rules, readOptions } from "../options.ts";
import { type Reader, readerOf, type Source } from "./source.ts";

/** A `Semaphore`, a `Limiter`, or any other object that runs work in slots. */
export interface StreamGate<Slot, Options> {
  /** The number of slots. The stream reads at most this number of items ahead, plus `readAhead`. */
  readonly capacity: number;
  /** Runs the work while it holds a slot. */
  run<T>(work: (slot: Slot) => T | Promise<T>, options?: Options): Promise<Awaited<T>>;
}

/** The third argument of the function that `stream` calls for each item. */
export interface StreamContext<Slot> {
  /** Aborts when the result is no longer needed. */
  readonly signal: AbortSignal;
  /** The slot that the item holds. */
  readonly slot: Slot;
}

/** Options of `stream`. */
export interface StreamOptions<Item = unknown, Options = object> {
  /** Whether results come in the order of the items. @defaultValue true */
  ordered?: boolean | undefined;
  /** How many items may be read ahead beyond the number of slots. @defaultValue 0 */
  readAhead?: number | undefined;
  /** Ends the stream: the iterator rejects with the signal's own reason. */
  signal?: AbortSignal | undefined;
  /** Returns the options of `gate.run` for an item: a cost, a key, a level. @defaultValue no options */
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
 * Runs `fn` for every item of a source, each in a slot of `gate`, and returns the results as an async iterable. It
 * reads at most `readAhead` items more than the gate has slots. When the consumer stops, an item fails or the signal
 * aborts, the source is closed and the signals of running work abort.
 *
 * @throws {TypeError} if an argument or option is invalid. The iterator rejects with the error of `fn` or of the
 * source.
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { stream } from "slotkeeper/limiter";
 *
 * const urls = ["https://example.com/1", "https://example.com/2"];
 * const fourAtATime = new Semaphore(4);
 * for await (const status of stream(fourAtATime, urls, async (url, _, { signal }) => (await fetch(url, { signal
 * })).status)) {
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
  const given = readOptions(options, RULES as Rules<typeof options>);
  check("fn", callback, fn);
  check("gate", GATE, gate);
  return new GatedStream(gate, source, fn, given);
}

class GatedStream<Item, T, Slot, Options extends { signal?: AbortSignal | undefined }>
  implements AsyncIterableIterator<Awaited<T>>
{
  readonly #gate: StreamGate<Slot, Options>;
  readonly #fn: (item: Item, index: number, context: StreamContext<Slot>) => T | Promise<T>;
  readonly #options: StreamOptions<Item, Options>;
  readonly #reader: Reader<Item>;
  readonly #controller = new AbortController();
  /** The results that were not taken yet. The key is the index of the item, or the order of completion if unordered. */
  readonly #results = new Map<number, Result<Awaited<T>>>();
  #read = 0;
  #arrived = 0;
  #taken = 0;
  #isBegun = false;
  #isReading = false;
  /** Whether the source has ended by itself. */
  #isRead = false;
  #isOver = false;
  #failure: { error: unknown } | undefined;
  /** The calls of `next` that wait for a result. */
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
    this.#reader = readerOf("source", source);
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

  /** Called by the first `next`, so that a stream that is never read leaves no listener. */
  #begin(): void {
    this.#isBegun = true;
    const { signal } = this.#options;
    if (this.#isOver) return;
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Called when the consumer stops. */
  async return(): Promise<IteratorResult<Awaited<T>>> {
    await this.#end();
    this.#results.clear();
    this.#taken = this.#read;
    this.#answer();
    return { done: true, value: undefined };
  }

  readonly #onAbort = (): void => this.#fail(this.#options.signal?.reason);

  /** Reads and starts items as long as there is room. */
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

  /** `async`, so that an error in `acquire` fails the item and not the source. */
  async #run(item: Item, index: number): Promise<Awaited<T>> {
    const { signal } = this.#controller;
    const asked = { ...this.#options.acquire?.(item, index), signal };
    return this.#gate.run((slot) => this.#fn(item, index, { signal, slot }), asked as unknown as Options);
  }

  /** Answers the waiting calls of `next`: with results, then the failure once, then the end. */
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
    // The first error counts; an error from closing the source is ignored.
    this.#end().catch(() => {});
    this.#answer();
  }

  /** Closes the source and aborts running work. */
  async #end(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (this.#taken < this.#read) this.#controller.abort(this.#failure?.error);
    await this.#reader.stop();
  }
}
