#!/usr/bin/env node
// Checked in, so that `npm ci` can link the command before anything is built.
import { existsSync, readFileSync } from "node:fs";

const built = new URL("../dist/main.js", import.meta.url);
if (!existsSync(built)) {
  console.error(
    "slotkeeper has not been built yet. Run `npm run build` at the root of the repository, then try again.",
  );
  process.exit(1);
}
// Before the import: an older Node fails there, with a message about a missing export.
const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const oldest = engines.node.slice(">=".length);
const [major, minor] = process.versions.node.split(".").map(Number);
const [oldestMajor, oldestMinor] = oldest.split(".").map(Number);
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  console.error(`slotkeeper needs Node ${oldest} or later; this is Node ${process.versions.node}.`);
  process.exit(1);
}
const { main } = await import(built.href);
process.exitCode = await main(process.argv.slice(2));
