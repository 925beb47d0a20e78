/** Reads the flags of a command. What only help and mistakes need is loaded for them: `exec` starts in 70 ms. */
import { parseArgs } from "node:util";
import type { Argument, Command, Flags, Options } from "./commands/command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";

/** A command with the types of its flags and arguments. */
type CommandOf<O extends Options, A extends readonly Argument[]> = Command & {
  readonly options: O;
  readonly arguments?: A;
};
type Words<A extends readonly Argument[]> = {
  readonly [At in keyof A]: A[At] extends { readonly words: readonly (infer Word)[] } ? Word : string;
};

/** Prints the problem and where to find the help. The help itself would push the message off a small terminal. */
export function wrongUsage(problem: string, { name }: Command): ExitCode {
  process.stderr.write(`${problem}\nRun \`slotkeeper ${name} --help\` for its options.\n`);
  return EXIT.usage;
}

/** Returns the exit code. */
export type Run = (args: readonly string[]) => Promise<number>;

/** Runs a command with its flags and arguments, unless they are invalid or only ask for help. */
export function running<const O extends Options, const A extends readonly Argument[] = readonly []>(
  command: CommandOf<O, A>,
  run: (flags: Flags<O>, words: Words<A>) => Promise<number>,
): Run {
  return async (args) => {
    const read = await readArguments(args, command);
    return typeof read === "number" ? read : run(read.flags, read.words);
  };
}

/**
 * Returns the flags and arguments of a command, or the exit code if they are invalid or only ask for help. Arguments may
 * stand anywhere, and after `--`.
 */
export async function readArguments<const O extends Options, const A extends readonly Argument[] = readonly []>(
  args: readonly string[],
  command: CommandOf<O, A>,
): Promise<{ flags: Flags<O>; words: Words<A> } | ExitCode> {
  const { options } = command;
  const allowPositionals = command.arguments !== undefined;
  const unknown = await unknownFlags(args, options);
  if (unknown !== undefined) return wrongUsage(unknown, command);
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    if ((values as { help?: boolean }).help === true) {
      process.stdout.write((await import("./commands/command.ts")).helpOf(command));
      return EXIT.ok;
    }
    mustHaveValues(values);
    const problem = await argumentProblem(command, positionals);
    return problem === undefined
      ? { flags: values, words: positionals as unknown as Words<A> }
      : wrongUsage(problem, command);
  } catch (error) {
    return wrongUsage(valueProblem((error as Error).message), command);
  }
}

/** Says in our words what `parseArgs` says about a flag with its value. Other messages are ours. */
function valueProblem(message: string): string {
  const [, flag = ""] = /^Option '(?:-\w, )?(--[\w-]+)/.exec(message) ?? [];
  if (flag === "") return message;
  if (message.includes("does not take an argument")) return `${flag} takes no value.`;
  return `Expected a value after ${flag}. A value that begins with a dash is written ${flag}=VALUE.`;
}

/** All arguments are required. An empty one is most likely a variable that is not set. */
async function argumentProblem(command: Command, words: readonly string[]): Promise<string | undefined> {
  const { arguments: expected = [] } = command;
  if (words.length !== expected.length) {
    const { argumentsText } = await import("./commands/command.ts");
    return `Expected ${argumentsText(command)}, got ${gotText(words)}.`;
  }
  const problems = expected.flatMap(({ name, words: known }, at) => {
    const word = words[at] ?? "";
    if (word === "") return [`${name} is empty: perhaps a variable is not set.`];
    if (known === undefined || known.includes(word)) return [];
    return [`Expected ${name} to be ${known.join(" or ")}, got ${JSON.stringify(word)}.`];
  });
  return problems.length === 0 ? undefined : problems.join("\n");
}

function gotText(words: readonly string[]): string {
  return words.length === 0 ? "no argument" : words.map((word) => JSON.stringify(word)).join(" ");
}

/** The index of the first argument that is neither a flag nor the value of one; `undefined` if there is none. */
export function firstArgument(args: readonly string[], options: Options): number | undefined {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  return tokens.find(({ kind }) => kind === "positional")?.index;
}

/** Names each unknown flag with the one that was probably meant, then all flags of the command, the nearest first. */
async function unknownFlags(args: readonly string[], options: Options): Promise<string | undefined> {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const unknown = tokens.flatMap((token) =>
    token.kind === "option" && !Object.hasOwn(options, token.name) ? [token] : [],
  );
  const [first] = unknown;
  if (first === undefined) return undefined;
  const { nearestFirst, nearMatch } = await import("@slotkeeper/server/words");
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
