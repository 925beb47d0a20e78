import { createHash } from "node:crypto";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { afterAll, expect, test } from "vitest";

/** A host has one pool in any spelling of its name or hash, in every function. */

const database = await TestDatabase.open();
afterAll(() => database.close());
const client = await database.connect();

const sha256 = (name: string) => createHash("sha256").update(name).digest("hex");
const NAME = "api.example.com";

/** Ways to name the same host: a hash, a name, or both. */
const SPELLINGS: readonly [string, string | null, string | null][] = [
  ["the plain name", null, NAME],
  ["upper case", null, "API.Example.COM"],
  ["a trailing dot", null, `${NAME}.`],
  ["upper case and a trailing dot", null, "API.EXAMPLE.COM."],
  ["the hash", sha256(NAME), null],
  ["the hash in upper case", sha256(NAME).toUpperCase(), null],
  ["the hash and the name with a dot", sha256(NAME), `${NAME}.`],
  ["the hash of the name exactly as it is sent", sha256("API.example.com."), "API.example.com."],
];

const tryAcquire = async (hash: string | null, name: string | null): Promise<string> => {
  const { rows } = await client.query<{ status: string }>(
    "SELECT status FROM download_try_acquire_slot($1, $2, $3, 0, 1, 0)",
    [hash, name, `bucket ${Math.random()}`],
  );
  return rows[0]?.status ?? "";
};

test.each(SPELLINGS)("download_try_acquire_slot: %s", async (_, hash, name) => {
  const [token] = (
    await client.query("SELECT slot_token FROM download_try_acquire_slot($1, $2, 'holder', 0, 1, 0)", [hash, name])
  ).rows;
  expect(token.slot_token).toMatch(new RegExp(`^slot_${sha256(NAME)}\\.`));
  for (const [, otherHash, otherName] of SPELLINGS) expect(await tryAcquire(otherHash, otherName)).toBe("QUEUE_FULL");
  await client.query("SELECT download_release_slot($1, 'holder', $2, 0)", [hash, token.slot_token]);
});

test.each(SPELLINGS)("waiters and the breaker: %s", async (_, hash, name) => {
  await client.query("SELECT download_register_fq_waiter($1, $2, 'b')", [hash, name]);
  await client.query("SELECT download_upsert_throttle_protection($1, $2, 1, true, 503, 60, 60, 1, 1, 1)", [hash, name]);
  const { rows } = await client.query(
    'SELECT (SELECT array_agg(DISTINCT hostname_pattern) FROM upstream_ip_queue_depth) AS depths, (SELECT array_agg("HOSTNAME_HASH") FROM "THROTTLE_PROTECTION") AS breakers',
  );
  expect(rows).toEqual([{ depths: [sha256(NAME)], breakers: [sha256(NAME)] }]);
  if (name !== null) await client.query("SELECT download_release_fq_waiter($1, 'b')", [name]);
});

test.each(["API.Example.com.", sha256(NAME).toUpperCase()])("func_try_acquire_slot: %s", async (pattern) => {
  await client.query('DELETE FROM "THROTTLE_PROTECTION"');
  const { rows } = await client.query("SELECT func_try_acquire_slot($1, 'b', 1, 0, 30, 0) AS id", [pattern]);
  expect(rows[0].id).toBeGreaterThan(0);
  expect((await client.query("SELECT func_try_acquire_slot($1, 'c', 1, 0, 30, 0) AS id", [NAME])).rows[0].id).toBe(-1);
  await client.query("SELECT func_release_fair_slot($1)", [rows[0].id]);
});

test("a name that is only a dot names no host", async () => {
  await expect(tryAcquire(null, ".")).rejects.toThrow("Expected a hostname or its hash, got neither");
});
