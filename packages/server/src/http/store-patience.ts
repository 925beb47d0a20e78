/** How long a caller waits for an answer that only the store can give. The engine continues to try after that. */
const PATIENCE_MS = 2_000;
/** How long an answer that does not depend on the store still waits for it. A commit takes a few milliseconds. */
const MOMENT_MS = 100;

/** Rejects if the store does not answer in time. The call may still take effect, and callers may repeat it. */
export async function withinPatience<T>(answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`The store did not answer within ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([answer, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when `done` is called, or after `MOMENT_MS`. */
export function aMoment(start: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    let isDone = false;
    start(() => {
      isDone = true;
      clearTimeout(timer);
      resolve();
    });
    if (!isDone) timer = setTimeout(resolve, MOMENT_MS);
  });
}
