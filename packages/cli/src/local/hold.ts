import type { KeeperLink } from "@slotkeeper/client/node/parts";
import { EXIT } from "../exit-codes.ts";
import { answerOf, KeeperRefusal } from "./wait.ts";

/**
 * The call that stays open while `exec` holds a slot. It returns the number of the slot. If the keeper dies, it is made
 * again at the next one, which knows the slot from its file.
 */
export class Hold {
  slot = 0;
  readonly #link: KeeperLink;
  readonly #headers: { readonly [name: string]: string };
  readonly #slotToken: string;
  readonly #onLost: () => void;
  #close: () => void = () => {};
  #isOver = false;
  #isLost = false;

  private constructor(
    link: KeeperLink,
    headers: { readonly [name: string]: string },
    slotToken: string,
    onLost: () => void,
  ) {
    this.#link = link;
    this.#headers = headers;
    this.#slotToken = slotToken;
    this.#onLost = onLost;
  }

  static async open(
    link: KeeperLink,
    headers: { readonly [name: string]: string },
    slotToken: string,
    onLost: () => void,
  ): Promise<Hold> {
    const hold = new Hold(link, headers, slotToken, onLost);
    await hold.#open();
    return hold;
  }

  /** The command has ended. Returns the exit code. */
  ended(code: number): number {
    this.#isOver = true;
    this.#close();
    return this.#isLost ? EXIT.lost : code;
  }

  async #open(): Promise<void> {
    const body = JSON.stringify({ slotToken: this.#slotToken });
    const call = { path: "/api/v0/local/hold", method: "POST", headers: this.#headers, body };
    const answer = await this.#link.open(call, () => void this.#again());
    this.#close = answer.close;
    if (this.#isOver) answer.close();
    this.slot = (answerOf(answer) as { slot: number }).slot;
  }

  /** A keeper that cannot be started does not end the command: its slot is written in its file. */
  async #again(): Promise<void> {
    if (this.#isOver) return;
    try {
      await this.#open();
    } catch (error) {
      if (!(error instanceof KeeperRefusal) || this.#isOver) return;
      this.#isLost = true;
      process.stderr.write("The keeper does not know the slot of this command any more. The command gets SIGTERM.\n");
      this.#onLost();
    }
  }
}
