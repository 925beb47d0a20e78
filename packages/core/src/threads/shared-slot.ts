/// <reference lib="esnext.disposable" preserve="true" />
import type { Attachment } from "./attachment.ts";
import { positiveMs } from "./options.ts";

/**
 * A slot held by this thread. It cannot be sent to another thread.
 *
 * @example
 * ```ts
 * import { SharedSemaphore } from "slotkeeper/threads";
 *
 * const slots = SharedSemaphore.create(2, { ttlMs: 30_000 });
 * const slot = await slots.acquire({ timeoutMs: 1_000 });
 * slot.renew();
 * slot.release();
 * ```
 */
export class SharedSlot implements Disposable {
  readonly #attachment: Attachment;
  readonly #cell: number;
  /** 0 once released. */
  #tag: number;

  /** @internal Slots are made by `SharedSemaphore`. */
  constructor(attachment: Attachment, cell: number, tag: number) {
    this.#attachment = attachment;
    this.#cell = cell;
    this.#tag = tag;
    attachment.holding[cell] = this;
  }

  /** From 1 up, unique among the slots held at this moment in all threads; at most `maxHolders`. */
  get number(): number {
    return this.#cell + 1;
  }

  /** When a waiter may take the slot back (milliseconds since the epoch); undefined without a ttl, or once it is lost. */
  get expiresAt(): number | undefined {
    return this.released ? undefined : this.#attachment.leases.expiresAt(this.#cell, this.#tag);
  }

  /** True once it is not held any more: released, expired, or its thread was declared dead. */
  get released(): boolean {
    return !this.#isCurrent() || !this.#attachment.isHeld(this.#cell, this.#tag);
  }

  /** Holds on for another `ttlMs` from now, by default the semaphore's; false once the slot is lost. */
  renew(ttlMs?: number): boolean {
    const { memory } = this.#attachment;
    if (memory.ttlMs === 0 && ttlMs !== undefined) {
      throw new TypeError(`Expected \`ttlMs\` only where the semaphore has a ttl, got ${ttlMs}`);
    }
    const renewedMs = ttlMs === undefined ? memory.ttlMs : positiveMs("ttlMs", ttlMs);
    if (!this.#isCurrent()) return false;
    if (memory.ttlMs === 0) return !this.released;
    this.#tag = this.#attachment.renew(this.#cell, this.#tag, renewedMs);
    return this.#tag !== 0;
  }

  /** Releases the slot. Returns true the first time; false after that, and if the slot was lost. */
  release(): boolean {
    const tag = this.#tag;
    if (!this.#isCurrent()) return false;
    this.#tag = 0;
    return this.#attachment.free(this.#cell, tag);
  }

  [Symbol.dispose](): void {
    this.release();
  }

  #isCurrent(): boolean {
    return this.#tag !== 0 && this.#attachment.holding[this.#cell] === this;
  }
}
