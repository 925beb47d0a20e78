import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearestFirst, nearMatch } from "@slotkeeper/server/words";
import { EXIT, type ExitCode } from "./exit-codes.ts";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Flags<O extends Options> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: false }>>["values"];

/** Prints the problem and where to find the help. The help itself would push the message off a small terminal. */
export function wrongUsage(problem: string, help: string): ExitCode {
  process.stderr.write(`${problem}\nRun \`${help.slice(0, help.indexOf(":"))} --help\` for its options.\n`);
  return EXIT.usage;
}

/** Returns the flags of a command, or the exit code if they are invalid or only ask for help. */
export function readFlags<const O extends Options>(
  args: readonly string[],
  options: O,
  help: string,
): Flags<O> | ExitCode {
  const read = readArguments(args, options, help, false);
  return typeof read === "number" ? read : read.values;
}

/** The same for a command that also takes arguments. These may stand anywhere, and after `--`. */
export function readArguments<const O extends Options>(
  args: readonly string[],
  options: O,
  help: string,
  allowPositionals = true,
): { values: Flags<O>; positionals: readonly string[] } | ExitCode {
  const unknown = unknownFlags(args, options);
  if (unknown !== undefined) return wrongUsage(unknown, help);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    if ((values as { help?: boolean }).help === true) {
      process.stdout.write(help);
      return EXIT.ok;
    }
    mustHaveValues(values);
    return { values, positionals };
  } catch (error) {
    return wrongUsage((error as Error).message, help);
  }
}

/** The index of the first argument that is neither a flag nor the value of one; `undefined` if there is none. */
export function firstArgument(args: readonly string[], options: Options): number | undefined {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  return tokens.find(({ kind }) => kind === "positional")?.index;
}

/** Names each unknown flag with the one that was probably meant, then all flags of the command, the nearest first. */
function unknownFlags(args: readonly string[], options: Options): string | undefined {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const unknown = tokens.flatMap((token) =>
    token.kind === "option" && !Object.hasOwn(options, token.name) ? [token] : [],
  );
  const [first] = unknown;
  if (first === undefined) return undefined;
  const known = Object.keys(options);
  const lines = unknown.map(({ name, rawName }) => {
    const near = nearMatch(name, known);
    return `Unknown flag \`${rawName}\`${near === undefined ? "." : `: did you mean \`--${near}\`?`}`;
  });
  const all = nearestFirst(first.name, known).map((name) => `--${name}`);
  return [...new Set(lines), `Known flags: ${all.join(", ")}.`].join("\n");
}

/** Refuses an empty value: most likely it is a variable that is not set. Leave the flag out to get its default. */
function mustHaveValues(values: { readonly [flag: string]: unknown }): void {
  const empty = Object.keys(values).filter((flag) => values[flag] === "");
  if (empty.length === 0) return;
  throw new TypeError(empty.map((flag) => `--${flag} is empty: give a value, or leave the flag out.`).join("\n"));
}
