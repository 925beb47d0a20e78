import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, describe, expect, it } from "vitest";

const database = await TestDatabase.open();
afterAll(() => database.close());

describe("a test file's database", () => {
  it("is a real PostgreSQL with the schema in place", async () => {
    const client = await database.connect();
    const { rows } = await client.query("SELECT count(*)::int AS applied FROM slotkeeper_migration");
    expect(rows[0].applied).toBeGreaterThan(0);
  });
});
