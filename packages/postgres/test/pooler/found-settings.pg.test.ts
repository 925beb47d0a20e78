import { DatabaseError, PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { describeSlotStore } from "@slotkeeper/testkit/store-conformance";
import { expect, test } from "vitest";
import { OPEN_LIMITS, race } from "../store/race.ts";
import { VirtualDatabase } from "../store/virtual-database.ts";

/**
 * A transaction pooler hands out sessions in which others may have set what they liked, and so may a database's owner.
 * Nothing of it may change an answer: what a name or a number reads as, which plan is taken.
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

describeSlotStore("PostgresStore in sessions that others have used", {
  skip: { push: "nothing is pushed yet: of its own release an instance is told by the answer, of others' by the poll" },
  open: async () => {
    const database = await VirtualDatabase.open(1_700_000_000_000, 16, optionsOf(FOUND));
    return { store: database.store, pass: (ms) => database.pass(ms), close: () => database.close() };
  },
});

/** Calls again what failed because two transactions met, as the service's poll does. */
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
    get(target, name: "tryAcquire" | "release" | "close") {
      const method = target[name].bind(target) as (given?: unknown) => Promise<unknown>;
      return (given?: unknown) => repeat(() => method(given));
    },
  });
}

test.each(["repeatable read", "serializable"])("S1: limits hold where transactions are %s", async (level) => {
  await using database = await TestDatabase.open();
  const dsn = new URL(database.directDsn);
  dsn.searchParams.set("options", optionsOf({ default_transaction_isolation: level }));
  const open = () => PostgresStore.open({ dsn: dsn.href, poolSize: 4 });
  const stores = (await Promise.all([open(), open()])).map(persistent);
  const policy = { ...OPEN_LIMITS, slots: 3, slotsPerBucket: 2 };
  const auditor = await database.connect();
  const result = await race({ stores, host: "h", policy, workers: 8, triesEach: 10, buckets: 3 }, auditor);
  await Promise.all(stores.map((store) => store.close()));
  expect(result.seen).toEqual([]);
  expect(result.mostHeld).toBeLessThanOrEqual(3);
  expect(result.mostOfBucket).toBeLessThanOrEqual(2);
  expect(result.granted).toBeGreaterThan(0);
});
