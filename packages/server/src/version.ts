import { readFileSync } from "node:fs";

/** Of this package; the same path from `src` and from `dist`. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }
).version;
