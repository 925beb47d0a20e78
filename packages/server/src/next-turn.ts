/** Resolves when the event loop has handled what waits: other requests, timers. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Maps a long list, some items in each turn of the event loop, so that it does not delay other requests. */
export async function mapInTurns<A, B>(items: readonly A[], perTurn: number, map: (item: A) => B): Promise<B[]> {
  const mapped: B[] = [];
  for (const [at, item] of items.entries()) {
    if (at % perTurn === perTurn - 1) await nextTurn();
    mapped.push(map(item));
  }
  return mapped;
}
