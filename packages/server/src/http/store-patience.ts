/** How long a caller waits for an answer that only the store can give. The engine continues to try after that. */
const PATIENCE_MS = 2_000;
/** How long an answer that does not depend on the store still waits for it. A commit takes a few milliseconds. */
const MOMENT_MS = 100;

/** Rejects if the store does not answer in time. The call may still take effect, and callers may repeat it. */
export async function withinPatience<T>(answer: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The store did not answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([answer, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** What `done` is called with; `undefined` if it is not called within `MOMENT_MS`. */
export function aMoment<T>(start: (done: (value: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDone = false;
    start((value) => {
      isDone = true;
      clearTimeout(timer);
      resolve(value);
    });
    if (!isDone) timer = setTimeout(() => resolve(undefined), MOMENT_MS);
  });
}
