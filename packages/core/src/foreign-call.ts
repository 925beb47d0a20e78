/** Calls a listener or logger of the user. If it throws or rejects, the error is ignored. */
export function callForeign(call: () => unknown): void {
  try {
    (call() as Partial<Promise<unknown>> | undefined)?.catch?.(() => {});
  } catch {}
}
