import type { Command, Option } from "../commands/command.ts";
import { isFile, quoted, spellings } from "./shell-words.ts";

/** `_arguments` of zsh does the work; each line of `case` describes one command to it. */
export function zshScript(commands: readonly Command[]): string {
  return `#compdef slotkeeper
# Completion of slotkeeper for zsh: source <(slotkeeper completion zsh), after compinit
_slotkeeper() {
  local -a commands=(
${commands.map(({ name, does }) => `    ${quoted(`${name}:${does}`)}`).join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    compadd -- --help --version
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
${commands.map(caseOf).join("\n")}
  esac
}
# Called as a function of fpath, or loaded with source.
if [[ $funcstack[1] == _slotkeeper ]]; then _slotkeeper "$@"; else compdef _slotkeeper slotkeeper; fi
`;
}

function caseOf({ name, options, arguments: expected = [], takesCommand }: Command): string {
  const specs = [
    ...Object.entries(options).map(([flag, option]) => optionSpec(flag, option)),
    ...expected.map((argument, at) =>
      quoted(`${at + 1}:${argument.name}:${argument.words === undefined ? " " : `(${argument.words.join(" ")})`}`),
    ),
    ...(takesCommand === true ? ["'(-)1:command: _command_names -e'", "'*::arguments: _normal'"] : []),
  ];
  return `    ${name}) _arguments -S ${specs.join(" \\\n      ")} ;;`;
}

/**
 * `'(-c --config)'{-c+,--config=}'[what it does]:FILE:_files'`: a flag excludes its other spelling. `+` and `=` let a value
 * follow in the same word or in the next.
 */
function optionSpec(flag: string, option: Option): string {
  const names = spellings(flag, option);
  const about = option.about.replaceAll(/[\\[\]:]/g, "\\$&");
  const value = option.value === undefined ? "" : `:${option.value}:${isFile(option) ? "_files" : " "}`;
  const text = quoted(`[${about}]${value}`);
  const typed = value === "" ? names : names.map((name) => `${name}${name.startsWith("--") ? "=" : "+"}`);
  return names.length === 1 ? `${typed[0]}${text}` : `${quoted(`(${names.join(" ")})`)}{${typed.join(",")}}${text}`;
}
