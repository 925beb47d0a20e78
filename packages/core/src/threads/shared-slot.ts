/// <reference lib="esnext.disposable" preserve="true" />
import { check } from "../options.ts";
import type { Attachment } from "./attachment.ts";
import { TTL } from "./options.ts";

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

  /** @internal `SharedSemaphore` creates the slots. */
  constructor(attachment: Attachment, cell: number, tag: number) {
    this.#attachment = attachment;
    this.#cell = cell;
    this.#tag = tag;
    attachment.holding[cell] = this;
  }

  /** From 1 up, at most `maxHolders`; unique among the slots that are held now in all threads. */
  get number(): number {
    return this.#cell + 1;
  }

  /**
   * When a waiter may take the slot back, in milliseconds since the epoch; `undefined` without a ttl, or if the slot
   * was lost.
   */
  get expiresAt(): number | undefined {
    return this.released ? undefined : this.#attachment.leases.expiresAt(this.#cell, this.#tag);
  }

  /** Whether the slot is no longer held: released, expired, or its thread was reaped. */
  get released(): boolean {
    return !this.#isCurrent() || !this.#attachment.isHeld(this.#cell, this.#tag);
  }

  /** Starts the ttl again, or another ttl, in milliseconds. Returns `false` if the slot was lost. */
  renew(ttlMs?: number): boolean {
    const { memory } = this.#attachment;
    if (memory.ttlMs === 0 && ttlMs !== undefined) {
      throw new TypeError(`Expected no \`ttlMs\`, because the semaphore has no ttl, got ${ttlMs}`);
    }
    if (ttlMs !== undefined) check("ttlMs", TTL, ttlMs);
    if (!this.#isCurrent()) return false;
    if (memory.ttlMs === 0) return !this.released;
    this.#tag = this.#attachment.renew(this.#cell, this.#tag, ttlMs ?? memory.ttlMs);
    return this.#tag !== 0;
  }

  /** Releases the slot. Returns `true` the first time, and `false` after that or if the slot was lost. */
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
