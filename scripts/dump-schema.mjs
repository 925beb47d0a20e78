// Writes packages/postgres/sql/schema.sql, the schema that all migrations together make: `npm run build && node
// scripts/dump-schema.mjs`. A test compares it, so that a migration's effect is seen where it is reviewed.
import { writeFileSync } from "node:fs";
import { dsnOf, dumpSchema, openCluster } from "@slotkeeper/testkit/postgres";
import { Client } from "pg";

const HEAD = `-- The schema that all migrations make, for reading and for the test that compares it; \`slotkeeper migrate\` does not use it.
-- Written by scripts/dump-schema.mjs.

`;

const cluster = await openCluster();
const client = new Client({ connectionString: dsnOf(cluster.dsn, cluster.template) });
try {
  await client.connect();
  writeFileSync(new URL("../packages/postgres/sql/schema.sql", import.meta.url), HEAD + (await dumpSchema(client)));
} finally {
  await client.end();
  await cluster.close();
}
