/**
 * What a command is called, takes and returns. Arguments are read, help is written and shells complete from this alone,
 * so that none of them knows a flag that another does not.
 */
import { type ExitName, exitHelp } from "../exit-codes.ts";

/** A flag: what `parseArgs` of Node needs, and what people read. */
export interface Option {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** It may be repeated. */
  readonly multiple?: true;
  /** What its value is called. A `FILE` or a `PATH` is completed as a file. */
  readonly value?: string;
  readonly about: string;
}

export type Options = { readonly [flag: string]: Option };

/** The flags that a person has given. */
export type Flags<O extends Options> = { readonly [Name in keyof O]?: Value<O[Name]> | undefined };
type Value<O extends Option> = O extends { readonly multiple: true }
  ? readonly string[]
  : O["type"] extends "boolean"
    ? boolean
    : string;
export type FlagsOf<C extends { readonly options: Options }> = Flags<C["options"]>;

/** An argument that is no flag. */
export interface Argument {
  readonly name: string;
  /** It must be one of these. */
  readonly words?: readonly string[];
}

export interface Command {
  readonly name: string;
  /** What it does, in the third person and without a full stop. */
  readonly does: string;
  /** Each way to call it, without `slotkeeper` and its name. */
  readonly usage: readonly string[];
  readonly arguments?: readonly Argument[];
  /** After `--` comes a command line of its own. */
  readonly takesCommand?: boolean;
  readonly options: Options;
  readonly notes?: string;
  readonly examples?: readonly string[];
  readonly exits?: readonly ExitName[];
  /** A line below the exit codes. */
  readonly exitNote?: string;
  /** Other commands start it; the general help and completion leave it out. */
  readonly isInternal?: boolean;
}

/** Where the text of a flag begins, and where it is wrapped. */
const TEXT_COLUMN = 22;
const WIDTH = 122;

export function helpOf({ name, does, usage, options, notes, examples, exits, exitNote }: Command): string {
  const sections = [
    `slotkeeper ${name}: ${does}.`,
    section(
      "Usage",
      usage.map((line) => `slotkeeper ${name} ${line}`.trimEnd()),
    ),
    `Options\n${Object.entries(options).map(optionText).join("\n")}`,
    notes,
    examples && section("Examples", examples),
    exits && `${exitHelp(exits)}${exitNote === undefined ? "" : `  ${exitNote}\n`}`.trimEnd(),
  ];
  return `${sections.filter((part) => part !== undefined).join("\n\n")}\n`;
}

/** `HOST open|close`: the arguments as the usage shows them. */
export function argumentsText({ arguments: expected = [] }: Command): string {
  return expected.map(({ name, words }) => words?.join("|") ?? name).join(" ");
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.map((line) => `  ${line}`).join("\n")}`;
}

function optionText([flag, { short, value, about }]: readonly [string, Option]): string {
  const names = `  ${short === undefined ? "   " : `-${short},`} --${flag}${value === undefined ? "" : ` ${value}`}`;
  const [first = "", ...rest] = wrapped(about, WIDTH - TEXT_COLUMN).map((line) => " ".repeat(TEXT_COLUMN) + line);
  const isFitting = names.length <= TEXT_COLUMN - 2;
  const lines = isFitting ? [names + first.slice(names.length), ...rest] : [names, first, ...rest];
  return lines.join("\n");
}

/** Breaks at spaces. A word that is longer than a line stays whole, so that it can be copied. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
