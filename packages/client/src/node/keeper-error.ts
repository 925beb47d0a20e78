import { errorClass } from "../errors.ts";

/**
 * The keeper of this machine cannot be used: it does not start, its folder is not safe, or it speaks another protocol.
 *
 * @example
 * if (error instanceof KeeperError) console.error(error.message);
 */
export const KeeperError = errorClass<{ reason: string }, "KEEPER">(
  "KeeperError",
  "KEEPER",
  (it) => `${it.reason}.`,
  false,
);
export type KeeperError = InstanceType<typeof KeeperError>;
