import { setTimeout as pause } from "node:timers/promises";
import type { KeeperLink } from "@slotkeeper/client/node/parts";
import { EXIT } from "../exit-codes.ts";
import { answerOf, KeeperRefusal } from "./wait.ts";

/**
 * The call that stays open while `exec` holds a slot. If the keeper dies, it is made again at the next one, which knows
 * the slot from its file.
 */
export class Hold {
  readonly #link: KeeperLink;
  readonly #headers: { readonly [name: string]: string };
  readonly #slotToken: string;
  readonly #onLost: () => void;
  readonly #over = new AbortController();
  #close: () => void = () => {};
  #isLost = false;

  constructor(link: KeeperLink, headers: { readonly [name: string]: string }, slotToken: string, onLost: () => void) {
    this.#link = link;
    this.#headers = headers;
    this.#slotToken = slotToken;
    this.#onLost = onLost;
    void this.#open();
  }

  /** The command has ended. Returns the exit code. */
  ended(code: number): number {
    this.#over.abort();
    this.#close();
    return this.#isLost ? EXIT.lost : code;
  }

  /** A keeper that cannot be started does not end the command: its slot is written in its file. */
  async #open(): Promise<void> {
    const { signal } = this.#over;
    if (signal.aborted) return;
    const body = JSON.stringify({ slotToken: this.#slotToken });
    const call = { path: "/api/v0/local/hold", method: "POST", headers: this.#headers, body, signal };
    try {
      const answer = await this.#link.open(call, () => void this.#open());
      this.#close = answer.close;
      answerOf(answer);
    } catch (error) {
      if (!(error instanceof KeeperRefusal) || (await isAbortedSoon(signal))) return;
      this.#isLost = true;
      process.stderr.write("The keeper does not know the slot of this command any more. The command gets SIGTERM.\n");
      this.#onLost();
    }
  }
}

/** The keeper may know before this process that the command has ended. */
const LATE_MS = 1_000;

function isAbortedSoon(signal: AbortSignal): Promise<boolean> {
  return pause(LATE_MS, false, { signal }).catch(() => true);
}
