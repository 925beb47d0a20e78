import { SHOWN } from "../commands/commands.ts";
import { COMPLETION } from "../commands/serving.ts";
import { EXIT } from "../exit-codes.ts";
import { running } from "../read-flags.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { zshScript } from "./zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

export const completionCommand = running(COMPLETION, async (_flags, [shell]) => {
  process.stdout.write(SCRIPTS[shell](SHOWN));
  return EXIT.ok;
});
