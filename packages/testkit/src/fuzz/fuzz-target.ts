import type { Random } from "../random/random.ts";

/** Something that takes input from outside. */
export interface FuzzTarget {
  readonly name: string;
  /** What it gets, and what must not happen. For people. */
  readonly title: string;
  /** Inputs in one batch. */
  readonly batch: number;
  /** Its part of a long run. */
  readonly share: number;
  open(): Promise<FuzzRun>;
}

export interface FuzzRun {
  /** Tries one batch of inputs. Throws if an input was handled badly. The same numbers give the same inputs. */
  tryBatch(random: Random): Promise<void>;
  /** Resident memory of the process that gets the inputs, in bytes, after garbage collection. */
  memory(): Promise<number>;
  close(): Promise<void>;
}

/** An input was handled badly. `input` is shown to people, to repeat it by hand. */
export class FuzzFailure extends Error {
  readonly input: string;

  constructor(what: string, input: unknown, cause?: unknown) {
    super(what, { cause });
    this.input = shown(input);
  }
}

const SHOWN = 2_000;

function shown(input: unknown): string {
  const text = typeof input === "string" ? input : JSON.stringify(input, (_, value) => plain(value));
  return (text ?? String(input)).slice(0, SHOWN);
}

const plain = (value: unknown): unknown =>
  typeof value === "bigint" || typeof value === "symbol" || typeof value === "function" || Number.isNaN(value)
    ? `<${String(value)}>`
    : value;

/** The memory of this process. */
export function ownMemory(): Promise<number> {
  (globalThis as { gc?: () => void }).gc?.();
  return Promise.resolve(process.memoryUsage().heapUsed);
}
