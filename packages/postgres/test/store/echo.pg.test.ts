import { setTimeout as pause } from "node:timers/promises";
import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { TcpProxy } from "@slotkeeper/testkit/proxy";
import { expect, test, vi } from "vitest";

test("NOTIFY2: an echo that arrives before the answer to its beat counts", async () => {
  await using database = await TestDatabase.open();
  const proxy = await TcpProxy.to(database.directDsn);
  const store = await PostgresStore.open({ dsn: proxy.url, listenDsn: database.directDsn });
  store.watch("one", () => {});
  await vi.waitFor(() => expect(store.gauges.listener?.isUp).toBe(true));
  // The beat is committed and its echo sent, while its answer is held back.
  proxy.silence();
  const beat = store.beat({ instance: "one", ttlMs: 5_000, about: {}, hosts: [] });
  await pause(300);
  proxy.resume();
  await beat;
  // Longer than an echo may take.
  await pause(1_700);
  expect(store.gauges.listener).toEqual({ isUp: true, losses: 0 });
  await store.close();
  await proxy.close();
});
