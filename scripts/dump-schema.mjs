// Writes packages/postgres/sql/schema.sql, the schema after all migrations: `npm run build && node
// scripts/dump-schema.mjs`. A test compares it, so that a review shows the effect of a migration.
import { writeFileSync } from "node:fs";
import { dsnOf, dumpSchema, onServer, openCluster } from "@slotkeeper/testkit/postgres";

const HEAD = `-- The schema that all migrations make, for reading and for the test that compares it; \`slotkeeper migrate\` does not use it.
-- Written by scripts/dump-schema.mjs.

`;

const cluster = await openCluster();
try {
  const dump = await onServer(dsnOf(cluster.dsn, cluster.template), (client) => dumpSchema(client));
  writeFileSync(new URL("../packages/postgres/sql/schema.sql", import.meta.url), HEAD + dump);
} finally {
  await cluster.close();
}
