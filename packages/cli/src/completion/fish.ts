import type { Command } from "../commands/command.ts";
import { isFile, valued } from "./shell-words.ts";

/** One `complete` for each word and flag. Each has a condition: which command is being typed, and how far. */
export function fishScript(commands: readonly Command[]): string {
  const taking = commands.flatMap((command) => valued(command).map((flag) => quoted(`${command.name} ${flag}`)));
  return `# Completion of slotkeeper for fish: slotkeeper completion fish > ~/.config/fish/completions/slotkeeper.fish
function __slotkeeper_is -a name place -d "whether a command is typed, and optionally the index of its next argument"
  set -l words (commandline -opc)
  test "$words[2]" = "$name"; or return 1
  contains -- -- $words; and return 1
  test -z "$place"; and return 0
  set -l taking ${taking.join(" ")}
  set -l at 0
  set -l isValue 0
  for word in $words[3..]
    if test $isValue = 1
      set isValue 0
    else if contains -- "$name $word" $taking
      set isValue 1
    else if not string match -q -- '-*' $word
      set at (math $at + 1)
    end
  end
  test $isValue = 0 -a $at = $place
end
function __slotkeeper_runs -d "whether the command line after -- is typed"
  set -l words (commandline -opc)
  contains -- "$words[2]" $argv; and contains -- -- $words
end
function __slotkeeper_command -d "completes the command line after --"
  set -l words (commandline -opc)
  set -l own $words[(math (contains -i -- -- $words) + 1)..]
  complete -C (string join ' ' -- (string escape -- $own) (commandline -ct))
end
complete -c slotkeeper -f
complete -c slotkeeper -n __fish_use_subcommand -l help -d 'show all commands'
complete -c slotkeeper -n __fish_use_subcommand -l version -d 'show the version'
${commands.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ name, does, options, arguments: expected = [], takesCommand }: Command): string[] {
  const when = (place = "") => quoted(`__slotkeeper_is ${name}${place && ` ${place}`}`);
  return [
    `complete -c slotkeeper -n __fish_use_subcommand -a ${name} -d ${quoted(does)}`,
    ...expected.flatMap(({ words }, at) =>
      words === undefined ? [] : [`complete -c slotkeeper -n ${when(String(at))} -a ${quoted(words.join(" "))}`],
    ),
    ...Object.entries(options).map(([flag, option]) => {
      const names = `${option.short === undefined ? "" : ` -s ${option.short}`} -l ${flag}`;
      const value = option.type === "boolean" ? "" : isFile(option) ? " -r -F" : " -x";
      return `complete -c slotkeeper -n ${when()}${names}${value} -d ${quoted(option.about)}`;
    }),
    ...(takesCommand === true
      ? [`complete -c slotkeeper -n '__slotkeeper_runs ${name}' -a '(__slotkeeper_command)'`]
      : []),
  ];
}

/** A word in single quotes, for fish. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
}
