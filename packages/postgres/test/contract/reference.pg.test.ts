import { readFileSync } from "node:fs";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, expect, it } from "vitest";

const PAGE = readFileSync(new URL("../../../../docs/reference/sql.md", import.meta.url), "utf8");
const database = await TestDatabase.open();
afterAll(() => database.close());

/** Ignores white space and the types that PostgreSQL adds to defaults. */
const plain = (signature: string) =>
  signature
    .replaceAll(/::\w+/g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\( | (?=\))/g, (c) => c.trim());

it("docs/reference/sql.md has the signature of every function of the contract, and no other", async () => {
  const client = await database.connect();
  const { rows } = await client.query<{ signature: string }>(`
    SELECT format('%s(%s) → %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid)) AS signature
    FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname ~ '^(download|func)_'`);
  const blocks = [...PAGE.matchAll(/```sql\n([\s\S]*?)```/g)].flatMap(([, block = ""]) =>
    block.split(/\n(?=download_|func_)/),
  );
  const documented = blocks.map((block) => plain(block).trim());
  expect(documented.sort()).toEqual(rows.map(({ signature }) => plain(signature)).sort());
});

it("docs/reference/sql.md names the columns of the tables", async () => {
  const client = await database.connect();
  const { rows } = await client.query<{ column: string }>(`
    SELECT column_name AS column FROM information_schema.columns WHERE table_schema = 'public'
      AND (table_name = 'THROTTLE_PROTECTION' AND column_name = upper(column_name)
        OR table_name IN ('upstream_ip_cooldown', 'upstream_ip_queue_depth') AND column_name NOT IN ('cool_until', 'is_direct', 'expires_at', 'expiries', 'hostname'))`);
  for (const { column } of rows) expect(PAGE).toContain(column);
  expect(rows.length).toBe(16);
});

it("every function that runs as its owner sets its search path and returns numbers with all digits", async () => {
  const client = await database.connect();
  const { rows } = await client.query<{ name: string; settings: string[] | null }>(`
    SELECT proname AS name, proconfig AS settings FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND (prosecdef OR proname ~ '^(download|func)_')`);
  expect(rows.length).toBeGreaterThan(20);
  for (const { name, settings } of rows) {
    expect([name, settings]).toEqual([name, expect.arrayContaining(["search_path=public, pg_temp"])]);
    if (!/slotkeeper_(commit|read|beat|instances|peek|totals)$/.test(name)) continue;
    expect([name, settings]).toEqual([name, expect.arrayContaining(["extra_float_digits=1"])]);
  }
});
