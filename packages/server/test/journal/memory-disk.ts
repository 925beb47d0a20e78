import type { AppendFile, JournalDisk, PreparedFile } from "@slotkeeper/server/internals";

/** The steps that may fail or wait. */
export type DiskStep = "prepare" | "commit" | "append";

/**
 * A disk in memory that shows its exact content at every moment, and fails if the test asks for it. A failed append
 * leaves half of its bytes, as on a full disk.
 */
export class MemoryDisk implements JournalDisk {
  content: Uint8Array | undefined;
  /** Called before each step. Throw to fail the step; return a promise to delay it. */
  onStep: (step: DiskStep) => void | Promise<void> = () => {};
  readonly steps: DiskStep[] = [];
  isOpen = 0;

  constructor(content?: Uint8Array) {
    this.content = content;
  }

  read(): Promise<Uint8Array | undefined> {
    return Promise.resolve(this.content);
  }

  async prepare(content: Uint8Array): Promise<PreparedFile> {
    await this.#step("prepare");
    return {
      commit: async () => {
        await this.#step("commit");
        this.content = content;
        this.isOpen++;
        return this.#file();
      },
    };
  }

  #file(): AppendFile {
    let isClosed = false;
    let isBroken = false;
    return {
      append: async (bytes) => {
        if (isClosed || isBroken) throw new Error("a file that failed or was closed was written to");
        try {
          await this.#step("append");
        } catch (error) {
          isBroken = true;
          this.#add(bytes.subarray(0, Math.floor(bytes.length / 2)));
          throw error;
        }
        this.#add(bytes);
      },
      check: async () => {},
      close: async () => {
        if (isClosed) throw new Error("closed twice");
        isClosed = true;
        this.isOpen--;
      },
    };
  }

  #add(bytes: Uint8Array): void {
    this.content = Buffer.concat([this.content ?? new Uint8Array(), bytes]);
  }

  async #step(step: DiskStep): Promise<void> {
    this.steps.push(step);
    await this.onStep(step);
  }
}

export function noSpace(): Error {
  return Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
}
