#!/usr/bin/env node
// Checked in, so that `npm ci` can link the command before anything is built.
import { existsSync } from "node:fs";

const built = new URL("../dist/main.js", import.meta.url);
if (!existsSync(built)) {
  console.error(
    "slotkeeper has not been built yet. Run `npm run build` at the root of the repository, then try again.",
  );
  process.exit(1);
}
const { main } = await import(built.href);
process.exitCode = await main(process.argv.slice(2));
