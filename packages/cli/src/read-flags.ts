import { type ParseArgsConfig, parseArgs } from "node:util";
import { EXIT, type ExitCode } from "./exit-codes.ts";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Flags<O extends Options> = ReturnType<typeof parseArgs<{ options: O; allowPositionals: false }>>["values"];

/** The flags of a command; or the code to exit with, where they make no sense or only help was asked for. */
export function readFlags<const O extends Options>(
  args: readonly string[],
  options: O,
  help: string,
): Flags<O> | ExitCode {
  const read = readArguments(args, options, help, false);
  return typeof read === "number" ? read : read.values;
}

/** The same for a command that takes more than flags: what is no flag may stand anywhere, and after `--`. */
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
    process.stderr.write(`${(error as Error).message}\n\n${help}`);
    return EXIT.usage;
  }
}

/** An empty value is a mistake, most likely a variable that is not set: without the flag there is a default. */
function mustHaveValues(values: { readonly [flag: string]: unknown }): void {
  const empty = Object.keys(values).filter((flag) => values[flag] === "");
  if (empty.length === 0) return;
  throw new TypeError(empty.map((flag) => `--${flag} is empty: give a value, or leave the flag out.`).join("\n"));
}
