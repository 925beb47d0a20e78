import { ServiceCallError } from "../call-service.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { exitOf } from "../signals.ts";
import { draw, type Size } from "./draw.ts";
import { afterKey, keysIn } from "./keys.ts";
import type { ServiceReader } from "./read-service.ts";
import { Screen } from "./screen.ts";
import { FIRST_MODEL, type TopModel } from "./top-model.ts";

/** Reading takes at most a tenth of the time, for any number of hosts. */
const SHARE = 10;

/** The live view. Only a key or a signal ends it; it keeps trying a service that does not answer. */
export class TopRun {
  readonly #reader: ServiceReader;
  readonly #everyMs: number;
  readonly #screen: Screen;
  #model: TopModel = FIRST_MODEL;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reading = 0;
  #end: (code: ExitCode) => void = () => {};

  constructor(reader: ServiceReader, everyMs: number, hasColours: boolean) {
    this.#reader = reader;
    this.#everyMs = everyMs;
    this.#screen = new Screen(hasColours);
  }

  async run(): Promise<ExitCode> {
    const ended = new Promise<ExitCode>((resolve) => {
      this.#end = resolve;
    });
    for (const signal of ["SIGTERM", "SIGHUP"] as const) {
      process.once(signal, () => process.exit(exitOf(signal)));
    }
    this.#screen.open(
      (input) => this.#onKeys(input),
      () => this.#show(),
    );
    this.#show();
    void this.#read();
    const code = await ended;
    clearTimeout(this.#timer);
    this.#screen.close();
    return code;
  }

  #onKeys(input: string): void {
    const { open } = this.#model;
    for (const key of keysIn(input)) {
      const next = afterKey(this.#model, key, Math.max(1, this.#size().rows - 6));
      if (next === "quit") {
        this.#end(EXIT.ok);
        return;
      }
      this.#model = next;
    }
    this.#show();
    // Another page needs other data, so it is read at once.
    if (this.#model.open !== open) void this.#read();
  }

  async #read(): Promise<void> {
    clearTimeout(this.#timer);
    const reading = ++this.#reading;
    const startedAt = performance.now();
    const change = await this.#reader.read(this.#model.open).then(
      (snapshot) => ({ snapshot, problem: "" }),
      (error: unknown) => ({ problem: problemOf(error) }),
    );
    // A later reading, for another page, is in progress.
    if (reading !== this.#reading) return;
    this.#model = { ...this.#model, ...change };
    this.#show();
    const pauseMs = Math.max(this.#everyMs, (performance.now() - startedAt) * SHARE);
    this.#timer = setTimeout(() => void this.#read(), pauseMs);
  }

  #show(): void {
    this.#screen.show(draw(this.#model, this.#reader.url, this.#size()));
  }

  #size(): Size {
    return { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  }
}

function problemOf(error: unknown): string {
  if (error instanceof ServiceCallError && error.status !== undefined) return error.message;
  return "No connection to the service: trying again. The figures may be old.";
}
