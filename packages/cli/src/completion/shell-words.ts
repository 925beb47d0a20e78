import type { Command, Option } from "../commands/command.ts";

/** What the scripts of all shells need from the table of commands. */

export function isFile({ value }: Option): boolean {
  return value === "FILE" || value === "PATH";
}

/** The ways to type a flag: `-c`, `--config`. */
export function spellings(flag: string, { short }: Option): string[] {
  return [...(short === undefined ? [] : [`-${short}`]), `--${flag}`];
}

/** The flags of a command that take a value, or only those that take a file, as they are typed. */
export function valued({ options }: Command, kind: "any" | "file" = "any"): string[] {
  const taking = Object.entries(options).filter(([, option]) => option.type === "string");
  return taking
    .filter(([, option]) => kind === "any" || isFile(option))
    .flatMap(([flag, option]) => spellings(flag, option));
}

/** A word in single quotes, for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
