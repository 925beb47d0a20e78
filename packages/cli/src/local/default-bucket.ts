import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";

const LONGEST = 255;

/** Who shares fairly if `--as` is missing: the repository of the working directory, else the user. */
export function defaultBucket(): string {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    // A worktree has a file of this name.
    if (existsSync(join(folder, ".git"))) return folder.slice(-LONGEST);
    if (folder === dirname(folder)) return userInfo().username;
  }
}
