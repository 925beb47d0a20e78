import { setTimeout as pause } from "node:timers/promises";
import type { KeeperLink } from "@slotkeeper/client/node/parts";
import { EXIT } from "../exit-codes.ts";
import { answerOf, KeeperRefusal } from "./wait.ts";

/**
 * The call that confirms a slot, and stays open while `exec` holds it. If the keeper dies, it is made again at the next
 * one, which knows the slot from its file.
 */
export class Hold {
  readonly #link: KeeperLink;
  readonly #headers: { readonly [name: string]: string };
  readonly #onLost: () => void;
  readonly #over = new AbortController();
  #close: () => void = () => {};
  #isLost = false;

  constructor(link: KeeperLink, headers: { readonly [name: string]: string }, onLost: () => void) {
    this.#link = link;
    this.#headers = headers;
    this.#onLost = onLost;
  }

  /** Returns false if the keeper has taken the slot back. Then the command must not start. */
  async confirm(slotToken: string, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const leave = () => this.#over.abort(signal.reason);
    signal.addEventListener("abort", leave);
    try {
      await this.#call(slotToken);
      return true;
    } catch (error) {
      if (error instanceof KeeperRefusal && error.problem === "SLOT_LOST") return false;
      throw error;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** The command has ended. Returns the exit code. */
  ended(code: number): number {
    this.close();
    return this.#isLost ? EXIT.lost : code;
  }

  close(): void {
    this.#over.abort();
    this.#close();
  }

  /** A keeper that cannot be started does not end the command: its slot is written in its file. */
  async #again(slotToken: string): Promise<void> {
    const { signal } = this.#over;
    if (signal.aborted) return;
    try {
      await this.#call(slotToken);
    } catch (error) {
      if (!(error instanceof KeeperRefusal) || (await isAbortedSoon(signal))) return;
      this.#isLost = true;
      process.stderr.write("The keeper does not know the slot of this command any more. The command gets SIGTERM.\n");
      this.#onLost();
    }
  }

  async #call(slotToken: string): Promise<void> {
    const { signal } = this.#over;
    const body = JSON.stringify({ slotToken });
    const call = { path: "/api/v0/local/hold", method: "POST", headers: this.#headers, body, signal };
    const answer = await this.#link.open(call, () => void this.#again(slotToken));
    this.#close = answer.close;
    answerOf(answer);
  }
}

/** The keeper may know before this process that the command has ended. */
const LATE_MS = 1_000;

function isAbortedSoon(signal: AbortSignal): Promise<boolean> {
  return pause(LATE_MS, false, { signal }).catch(() => true);
}
