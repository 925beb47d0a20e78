import type { ServiceConfig } from "@slotkeeper/protocol";
import type { Scrubber } from "./scrubber.ts";

/** The levels of log lines. */
export type LogLevel = NonNullable<ServiceConfig["logLevel"]>;
/** What a log line has beside its message. */
export type LogFields = { readonly [key: string]: unknown };

/** Where the service writes its log lines. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Records an action of an operator, at every level. */
  audit(action: string, fields?: LogFields): void;
  isOn(level: LogLevel): boolean;
}

export interface LineLoggerInit {
  readonly write: (line: string) => void;
  /** The number of lines that `write` accepted and lost. */
  readonly lost?: (() => number) | undefined;
  readonly scrubber: Scrubber;
  readonly now: () => number;
  /** Whether lines are JSON for machines or text for people. */
  readonly isJson: boolean;
  readonly hasColours: boolean;
}

const RANK = { debug: 0, info: 1, warn: 2, error: 3 } as const satisfies Record<LogLevel, number>;
const COLOURS = { debug: "\u001b[90m", info: "\u001b[36m", warn: "\u001b[33m", error: "\u001b[31m" } as const;
const PLAIN = "\u001b[0m";

/** The longest text of one field. A stack may be longer, because it is ours. */
const LONGEST_TEXT = 500;
const LONGEST_STACK = 4_000;

/**
 * Writes one line per event. The scrubber cleans every message and every value. A line that cannot be written is lost.
 */
export class LineLogger implements Logger {
  readonly #init: LineLoggerInit;
  level: LogLevel = "info";
  #failed = 0;

  constructor(init: LineLoggerInit) {
    this.#init = init;
  }

  isOn(level: LogLevel): boolean {
    return RANK[level] >= RANK[this.level];
  }

  /** The number of lines that could not be written. */
  get lost(): number {
    return this.#failed + (this.#init.lost?.() ?? 0);
  }

  readonly debug = this.#at("debug");
  readonly info = this.#at("info");
  readonly warn = this.#at("warn");
  readonly error = this.#at("error");

  audit(action: string, fields: LogFields = {}): void {
    this.#write("info", `audit: ${action}`, fields);
  }

  #at(level: LogLevel): (message: string, fields?: LogFields) => void {
    return (message, fields = {}) => {
      if (this.isOn(level)) this.#write(level, message, fields);
    };
  }

  #write(level: LogLevel, message: string, fields: LogFields): void {
    const { write, scrubber, isJson, now } = this.#init;
    const time = new Date(now()).toISOString();
    const msg = scrubber.scrubSentence(message);
    const clean = scrubber.scrubValue(plainFields(fields)) as LogFields;
    const line = isJson ? JSON.stringify({ time, level, msg, ...clean }) : this.#forPeople(time, level, msg, clean);
    try {
      write(`${line}\n`);
    } catch {
      this.#failed++;
    }
  }

  #forPeople(time: string, level: LogLevel, message: string, fields: LogFields): string {
    const { stack, ...rest } = fields;
    const [colour, plain] = this.#init.hasColours ? [COLOURS[level], PLAIN] : ["", ""];
    const details = Object.entries(rest).map(
      ([key, value]) => `${key}=${typeof value === "string" ? quoted(value) : JSON.stringify(value)}`,
    );
    const head = `${time.slice(11, 23)} ${colour}${level.toUpperCase().padEnd(5)}${plain} ${message}`;
    return [head, ...details].join("  ") + (stack === undefined ? "" : `\n${String(stack)}`);
  }
}

/** JSON does not include errors by itself. A cause is logged, too. */
function plainFields(fields: LogFields): LogFields {
  const { error, ...rest } = fields;
  if (error === undefined) return shortened(rest);
  if (!(error instanceof Error)) return shortened({ ...rest, error: String(error) });
  const cause = error.cause instanceof Error ? { cause: `${error.cause.name}: ${error.cause.message}` } : {};
  const plain = shortened({ ...rest, error: `${error.name}: ${error.message}`, ...cause });
  return { ...plain, stack: error.stack?.slice(0, LONGEST_STACK) };
}

function isLong(value: unknown): value is string {
  return typeof value === "string" && value.length > LONGEST_TEXT;
}

function shortened(fields: LogFields): LogFields {
  if (!Object.values(fields).some(isLong)) return fields;
  const entries = Object.entries(fields).map(([key, value]) => [
    key,
    isLong(value) ? `${value.slice(0, LONGEST_TEXT)}…` : value,
  ]);
  return Object.fromEntries(entries) as LogFields;
}

function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text);
}
