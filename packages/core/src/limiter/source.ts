/**
 * Reads items one by one from iterables, async iterables, Node streams and web streams.
 *
 * SOURCE1  At most one read runs at a time, and `stop` ends the source even during a read. An async generator handles
 *     `return` only after the read, so a stream that waits for data would stay open. Streams are therefore destroyed or
 *     cancelled.
 * SOURCE2  A source that ended by itself or failed is not stopped again.
 */
import { anyObject, check, kind } from "../options.ts";

/** The items of `map` and `stream`: an iterable, an async iterable, or a web `ReadableStream`. */
export type Source<Item> = Iterable<Item> | AsyncIterable<Item> | ReadableStream<Item>;

export interface Reader<Item> {
  next(): IteratorResult<Item> | Promise<IteratorResult<Item>>;
  /** Closes the source. Resolves when it is closed, or at once during a read. */
  stop(): Promise<void>;
}

type AnyIterator<Item> = Iterator<Item> | AsyncIterator<Item>;

const ITERABLE = /* @__PURE__ */ kind("an iterable", (value) => {
  const source = value as Partial<Iterable<unknown> & AsyncIterable<unknown> & ReadableStream> | null | undefined;
  return Boolean(source?.[Symbol.asyncIterator] ?? source?.[Symbol.iterator] ?? source?.getReader);
});

/** `field` is the name of the source in errors. */
export function readerOf<Item>(field: string, source: Source<Item>): Reader<Item> {
  check(field, ITERABLE, source);
  if (typeof source === "object" && "getReader" in source) return webReader(source);
  const iterable = source as Partial<Iterable<Item> & AsyncIterable<Item>>;
  const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
  return iteratorReader(
    iterator as AnyIterator<Item>,
    typeof source === "object" && "destroy" in source ? () => (source as { destroy(): void }).destroy() : undefined,
  );
}

function webReader<Item>(stream: ReadableStream<Item>): Reader<Item> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done: false, value };
    },
    // Does nothing if the stream has ended.
    stop: () => reader.cancel(),
  };
}

function iteratorReader<Item>(iterator: AnyIterator<Item>, destroy: (() => void) | undefined): Reader<Item> {
  let isReading = false;
  /** Also set from the beginning of a read until it has returned an item: the source has ended if `next` throws. */
  let isOver = false;
  const itemOf = (result: IteratorResult<Item>): IteratorResult<Item> => {
    // As `for…of` does: a result that is not an object would be an endless source of `undefined`.
    check("source.next()", anyObject, result);
    isOver = Boolean(result.done);
    return result;
  };
  const read = async (result: PromiseLike<IteratorResult<Item>>): Promise<IteratorResult<Item>> => {
    isReading = true;
    try {
      return itemOf(await result);
    } finally {
      isReading = false;
    }
  };
  return {
    next: () => {
      isOver = true;
      const result = iterator.next();
      return isPromiseLike(result) ? read(result) : itemOf(result);
    },
    stop: async () => {
      if (isOver && !isReading) return;
      if (isReading && destroy) return destroy();
      const returned = iterator.return?.() as Promise<unknown> | undefined;
      if (isReading) void Promise.resolve(returned).catch(() => {});
      else await returned;
    },
  };
}

/** Also a promise of another realm, and any object with `then`. */
function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | undefined)?.then === "function";
}
