import type { Writable } from "node:stream";

/** Some thousand lines: how far a reader may lag behind. */
const MOST_UNREAD_BYTES = 1024 * 1024;

/**
 * The destination of log lines: a stream that may fail or block at any time.
 *
 * LOGSINK1  A line that cannot be written is lost and counted. The service continues.
 * LOGSINK2  The amount of data that waits for a slow reader is bounded.
 * LOGSINK3  When lines can be written again, one line reports how many were lost.
 */
export class LogSink {
  readonly #stream: Writable;
  readonly #mostUnreadBytes: number;
  #lost = 0;
  #unreported = 0;

  constructor(stream: Writable, mostUnreadBytes = MOST_UNREAD_BYTES) {
    this.#stream = stream;
    this.#mostUnreadBytes = mostUnreadBytes;
    // A full disk and a reader that ended are also events. Without a listener they would end the process.
    stream.on("error", () => this.#lose());
  }

  /** Lines lost since the start. */
  get lost(): number {
    return this.#lost;
  }

  readonly write = (line: string): void => {
    const { writableLength, destroyed } = this.#stream;
    if (destroyed || writableLength + line.length > this.#mostUnreadBytes) {
      this.#lose();
      return;
    }
    try {
      if (this.#unreported > 0) this.#stream.write(`${JSON.stringify(lostLine(this.#unreported))}\n`);
      this.#unreported = 0;
      this.#stream.write(line);
    } catch {
      this.#lose();
    }
  };

  #lose(): void {
    this.#lost++;
    this.#unreported++;
  }
}

function lostLine(lines: number): object {
  return { time: new Date().toISOString(), level: "warn", msg: "log lines were lost", lines };
}
