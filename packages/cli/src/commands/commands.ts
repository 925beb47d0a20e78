import { ACQUIRE, EXEC, RELEASE } from "./calling.ts";
import type { Command } from "./command.ts";
import { BREAKER, LIMIT, PAUSE, RESUME, REVOKE, STATUS, TOP, WHO } from "./operating.ts";
import { COMPLETION, DOCTOR, KEEPER, MIGRATE, SERVE } from "./serving.ts";

const ALL = [
  SERVE,
  MIGRATE,
  DOCTOR,
  ACQUIRE,
  RELEASE,
  EXEC,
  STATUS,
  TOP,
  WHO,
  LIMIT,
  REVOKE,
  BREAKER,
  PAUSE,
  RESUME,
  COMPLETION,
  KEEPER,
] as const;

export type CommandName = (typeof ALL)[number]["name"];

/** Every command. */
export const COMMANDS: readonly Command[] = ALL;

/** The commands that people call. */
export const SHOWN: readonly Command[] = COMMANDS.filter(({ isInternal }) => isInternal !== true);
