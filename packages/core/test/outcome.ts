/** Records the state of a promise, so that a test can check it without awaiting the promise. */
export class Outcome<T> {
  status: "pending" | "fulfilled" | "rejected" = "pending";
  #value: T | undefined;
  reason: unknown = undefined;

  constructor(promise: Promise<T>, onFulfilled?: (value: T) => void) {
    promise.then(
      (value) => {
        this.status = "fulfilled";
        this.#value = value;
        onFulfilled?.(value);
      },
      (reason: unknown) => {
        this.status = "rejected";
        this.reason = reason;
      },
    );
  }

  get value(): T {
    if (this.status !== "fulfilled") throw new Error(`Expected the promise to be fulfilled, got ${this.status}`);
    return this.#value as T;
  }
}

export function outcome<T>(promise: Promise<T>): Outcome<T> {
  return new Outcome(promise);
}
