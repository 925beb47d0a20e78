#!/usr/bin/env node
// Judges a history of calls to the service: `node packages/testkit/bin/check-history.mjs --help`.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { formatVerdict, HistoryFormatError, HistoryReader, judgeLines, RULES } from "../dist/history/index.js";

const HELP = `Usage: node packages/testkit/bin/check-history.mjs [--json] FILE

Reads what clients of the service saw, as JSON lines, and decides whether every answer is allowed by the documentation. It
shares no code with the service. "-" reads from standard input. The format is in packages/testkit/src/history/line.ts.

  --json    prints the verdict as JSON
  --help    shows this

Rules
${RULES.map(({ name, title }) => `  ${name}   ${title}`).join("\n")}

Exit codes: 0 every answer is allowed; 1 a violation; 2 bad options, or a file that is no history.`;

function fail(message) {
  console.error(message);
  process.exit(2);
}

function read() {
  const options = { json: { type: "boolean", default: false }, help: { type: "boolean", default: false } };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return fail(`${error.message} See --help.`);
  }
}

const linesOf = (file) =>
  createInterface({
    input: file === "-" ? process.stdin : createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  });

/** The text of the lines that the violations concern. Standard input cannot be read twice. */
async function textOf(file, violations) {
  const wanted = new Set(violations.flatMap(({ lines }) => lines));
  const texts = new Map();
  if (file === "-" || wanted.size === 0) return undefined;
  let number = 0;
  for await (const text of linesOf(file)) if (wanted.has(++number)) texts.set(number, text);
  return (line) => texts.get(line);
}

const { values, positionals } = read();
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
const [file, ...more] = positionals;
if (file === undefined || more.length > 0) fail(`Expected one FILE, got ${positionals.length}. See --help.`);

const reader = new HistoryReader();
try {
  for await (const line of linesOf(file)) reader.add(line);
} catch (error) {
  if (!(error instanceof HistoryFormatError) && error.code === undefined) throw error;
  fail(error.message);
}
const verdict = judgeLines(reader.lines);
console.log(values.json ? JSON.stringify(verdict) : formatVerdict(verdict, await textOf(file, verdict.violations)));
process.exitCode = verdict.violations.length === 0 ? 0 : 1;
