import { DatabaseError, PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { expect, test } from "vitest";
import { race } from "../store/race.ts";
import { VirtualDatabase } from "../store/virtual-database.ts";

/**
 * A transaction pooler hands out sessions in which other clients may have set anything, and so may the owner of a
 * database. None of these settings may change an answer: how a name or a number is read, or which plan is used.
 */
const FOUND = {
  search_path: "pg_catalog",
  extra_float_digits: "-15",
  timezone: "Asia/Kathmandu",
  datestyle: "SQL,DMY",
  intervalstyle: "sql_standard",
  bytea_output: "escape",
  plan_cache_mode: "force_custom_plan",
  lock_timeout: "1",
};
const optionsOf = (settings: object) =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${String(value).replaceAll(" ", "\\ ")}`)
    .join(" ");

describeHostStore("PostgresStore in sessions that others have used", {
  open: () => VirtualDatabase.open({ options: optionsOf(FOUND) }),
});

/** Repeats calls that failed because of a conflict between two transactions, as the engine does. */
function persistent(store: PostgresStore): PostgresStore {
  const repeat = async (call: () => Promise<unknown>): Promise<unknown> => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof DatabaseError && error.state === "40001")) throw error;
      }
    }
  };
  return new Proxy(store, {
    get(target, name: "read" | "commit" | "close") {
      const method = target[name].bind(target) as (...given: unknown[]) => Promise<unknown>;
      return (...given: unknown[]) => repeat(() => method(...given));
    },
  });
}

test.each(["repeatable read", "serializable"])("P1, P2: limits hold if transactions are %s", async (level) => {
  await using database = await TestDatabase.open();
  const dsn = new URL(database.directDsn);
  dsn.searchParams.set("options", optionsOf({ default_transaction_isolation: level }));
  const open = () => PostgresStore.open({ dsn: dsn.href, poolSize: 4 });
  const stores = (await Promise.all([open(), open()])).map(persistent);
  const auditor = await database.connect();
  const result = await race({ stores, host: "h", slots: 3, workers: 8, grantsEach: 3, buckets: 4 }, auditor);
  await Promise.all(stores.map((store) => store.close()));
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(3);
  expect(result.mostOfBucket).toBe(1);
});
