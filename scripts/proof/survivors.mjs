// Changes that no test finds, by the reason why that is acceptable. `npm run mutate -- --survivors` prints them in this form.

export const EXPLAINED = {
  "A shortcut for speed: without it the general way gives the same result (the benchmarks W1 to W8 measure the difference)":
    [
      "gate.ts: this.onIdle → true",
      'gate.ts: typeof work !== "function" → true',
      'gate.ts: "function" → ""',
      "gate.ts: options === undefined → false",
      "gate.ts: !call && policy.isPlain && policy.acquireTimeoutMs === Infinity && this.root === → false",
      "gate.ts: isPlain && this.#crowd < policy.maxWaiters && !this.context.closed → false",
      "gate.ts: { const promise = new Promise<HeldSlot>(capture); this.#push(resolveNew); return → {}",
      "gate.ts: !policy.isPlain → true",
      "gate.ts: this.waiting > 0 || this.onIdle !== undefined || this.#idle.length > 0 → true",
      "gate.ts: this.waiting > 0 → this.waiting >= 0",
      "gate.ts: this.#idle.length > 0 → this.#idle.length >= 0",
      "gate.ts: this.waiting > 0 → true",
      "gate.ts: this.#idle.length > 0 → true",
      "gate.ts: knownId → true",
      "gate.ts: policy.onEvent → true",
      'gate.ts: typeof waiter === "function" → false',
      "gate.ts: waiter.waitSignal → true",
      "gate.ts: timeoutMs < Infinity → true",
      "gate.ts: timeoutMs < Infinity → timeoutMs <= Infinity",
    ],
  "The condition is only there for the types, or another one decides before it": [
    'keyed-slots.ts: typeof gate === "number" → true',
    "gate.ts: this.root.numbers?.release → this.root.numbers.release",
  ],
  "The boundary is never met: times are rounded down, so the two sides are never equal": [
    "keyed-slots.ts: gate <= sinceAt → gate < sinceAt",
  ],
};
