// Of psql what the guides use, where it is not installed: psql DSN [-v NAME=VALUE] [-c SQL] [-f FILE]…, one after the other.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Client } from "pg";

const { positionals, tokens } = parseArgs({
  options: {
    variable: { type: "string", short: "v", multiple: true },
    command: { type: "string", short: "c", multiple: true },
    file: { type: "string", short: "f", multiple: true },
  },
  allowPositionals: true,
  tokens: true,
});
const client = new Client({ connectionString: positionals[0] });
await client.connect();
try {
  for (const { name, value } of tokens) {
    if (name === "command") await client.query(value);
    if (name === "file") await client.query(readFileSync(value, "utf8"));
  }
} finally {
  await client.end();
}
