import type { Command } from "../commands/command.ts";
import { quoted, spellings, valued } from "./shell-words.ts";

/** Each line of `case` sets what the function below it offers for one command. */
export function bashScript(commands: readonly Command[]): string {
  const names = [...commands.map(({ name }) => name), "--help", "--version"].join(" ");
  return `# Completion of slotkeeper for bash: source <(slotkeeper completion bash)
_slotkeeper() {
  # Not COMP_WORDS: bash divides an address at its colons there.
  local line=\${COMP_LINE:0:COMP_POINT} typed at place=0 flags valued files command='' words=()
  read -ra typed <<< "$line"
  if [[ $line == *[[:space:]] ]]; then typed+=(''); fi
  local last=$((\${#typed[@]} - 1))
  local word=\${typed[last]} before=\${typed[last - 1]}
  COMPREPLY=()
  if ((last == 1)); then
    COMPREPLY=($(compgen -W ${quoted(names)} -- "$word"))
    return
  fi
  case \${typed[1]} in
${commands.map(lineOf).join("\n")}
    *) return ;;
  esac
  for ((at = 2; at < last; at++)); do
    if [[ \${typed[at]} == -- && -n $command ]]; then
      if ((at == last - 1)); then COMPREPLY=($(compgen -c -- "$word")); else _slotkeeper_files; fi
      return
    fi
    if [[ " $valued " == *" \${typed[at]} "* ]]; then ((at++)); elif [[ \${typed[at]} != -* ]]; then ((place++)); fi
  done
  if [[ $word == --*=* ]]; then before=\${word%%=*} word=\${word#*=}; fi
  if [[ " $files " == *" $before "* ]]; then _slotkeeper_files
  elif [[ " $valued " == *" $before "* ]]; then :
  elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [[ -n \${words[place]-} ]]; then COMPREPLY=($(compgen -W "\${words[place]}" -- "$word"))
  elif ((place >= \${#words[@]})); then COMPREPLY=($(compgen -W "$flags" -- "$word"))
  fi
}
_slotkeeper_files() {
  compopt -o filenames 2>/dev/null
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _slotkeeper slotkeeper
`;
}

function lineOf(command: Command): string {
  const { name, options, arguments: expected = [], takesCommand } = command;
  const flags = Object.entries(options).flatMap(([flag, option]) => spellings(flag, option));
  const words = expected.map((argument) => quoted(argument.words?.join(" ") ?? ""));
  const sets = [
    `flags=${quoted(flags.join(" "))}`,
    `valued=${quoted(valued(command).join(" "))}`,
    `files=${quoted(valued(command, "file").join(" "))}`,
    `words=(${words.join(" ")})`,
    ...(takesCommand === true ? ["command=yes"] : []),
  ];
  return `    ${name}) ${sets.join(" ")} ;;`;
}
