#!/usr/bin/env node
// The stand-in for PostgREST as a separate process, for benchmarks and for experiments:
//   node packages/testkit/bin/postgrest.mjs --dsn postgres://authenticator:…@127.0.0.1/slots [--anon-role R]
//   [--jwt-secret S]
// The first line of its output is {"url":"http://127.0.0.1:…"}. It ends with its standard input.
import { parseArgs } from "node:util";
import { PostgrestStandIn } from "../dist/postgrest/index.js";

const { values } = parseArgs({
  options: {
    dsn: { type: "string" },
    schemas: { type: "string", default: "public" },
    "anon-role": { type: "string" },
    "jwt-secret": { type: "string" },
    "pool-size": { type: "string", default: "10" },
  },
});
if (values.dsn === undefined) {
  console.error("Expected --dsn to be the address of a database");
  process.exit(2);
}
const standIn = await PostgrestStandIn.start({
  dsn: values.dsn,
  schemas: values.schemas.split(","),
  anonRole: values["anon-role"],
  jwtSecret: values["jwt-secret"],
  poolSize: Number(values["pool-size"]),
});
console.log(JSON.stringify({ url: standIn.url }));
process.stdin.resume().on("end", () => void standIn.close());
