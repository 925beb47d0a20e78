/** How long a caller waits for an answer that only the store can give. The engine continues to try after that. */
const PATIENCE_MS = 2_000;

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
