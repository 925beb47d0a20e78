import { readFileSync } from "node:fs";
import { migrate } from "@slotkeeper/postgres";
import { dumpSchema, TestDatabase } from "@slotkeeper/testkit/postgres";
import { describe, expect, it } from "vitest";

const WANTED = readFileSync(new URL("../../sql/schema.sql", import.meta.url), "utf8");
const ORIGINAL = readFileSync(new URL("original-layout.sql", import.meta.url), "utf8");

// After a change: npm run build && node scripts/dump-schema.mjs
describe("sql/schema.sql", () => {
  it("equals the result of the migrations", async () => {
    await using database = await TestDatabase.open();
    expect(await dumpSchema(await database.openSession())).toBe(withoutHead(WANTED));
  });

  it("equals their result on a database of the original", async () => {
    await using database = await TestDatabase.open({ isEmpty: true });
    const client = await database.openSession();
    await client.query(ORIGINAL);
    await migrate({ dsn: database.dsn });
    expect(await dumpSchema(client)).toBe(withoutHead(WANTED));
  });

  it("equals their result in another schema, whatever its name", async () => {
    await using database = await TestDatabase.open({ isEmpty: true });
    const schema = 'Slots "of" ours';
    await migrate({ dsn: database.dsn, schema });
    const client = await database.openSession();
    const dumped = await dumpSchema(client, schema);
    expect(dumped.replaceAll(/SET search_path TO .*/g, "")).toBe(
      withoutHead(WANTED).replaceAll(/SET search_path TO .*/g, ""),
    );
    const { rows } = await client.query(
      "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    );
    expect(rows).toEqual([{ n: 0 }]);
    await client.query(`SET search_path = ''`);
    const name = client.escapeIdentifier(schema);
    const answer = await client.query(`SELECT status FROM ${name}.download_try_acquire_slot('', 'x', 'b', 0, 5, 1)`);
    expect(answer.rows).toEqual([{ status: "ACQUIRED" }]);
  });
});

/** The file says on its first lines how it is made. */
function withoutHead(text: string): string {
  return text.replace(/^(?:--.*\n)+\n/, "");
}
