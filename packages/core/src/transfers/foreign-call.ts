/** Listeners and loggers are foreign code: whatever they throw, now or later, changes nothing. */
export function callForeign(call: () => unknown): void {
  try {
    const result = call();
    if (result instanceof Promise) result.catch(() => {});
  } catch {}
}
