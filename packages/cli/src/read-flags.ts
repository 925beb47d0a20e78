import { type ParseArgsConfig, parseArgs } from "node:util";
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

/** Refuses an empty value: most likely it is a variable that is not set. Leave the flag out to get its default. */
function mustHaveValues(values: { readonly [flag: string]: unknown }): void {
  const empty = Object.keys(values).filter((flag) => values[flag] === "");
  if (empty.length === 0) return;
  throw new TypeError(empty.map((flag) => `--${flag} is empty: give a value, or leave the flag out.`).join("\n"));
}
