import { type PostgresServer, startPostgres } from "@slotkeeper/testkit/postgres";
import { afterAll, beforeAll, expect, it } from "vitest";
import { slotkeeper } from "./command.ts";

/** Pausing stops the whole server, so the test has its own. */
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

it("serve exits after SIGTERM although the database does not answer any more", async () => {
  const environment = { SLOTKEEPER_BACKEND__POSTGRES__DSN: server.dsn };
  expect(await slotkeeper(["migrate"], environment).exited).toBe(0);
  const command = slotkeeper(["serve", "--listen", "127.0.0.1:0"], environment);
  await command.url();
  await server.command("pause");
  try {
    command.kill("SIGTERM");
    // The sockets of the database must not keep the process alive.
    expect(await command.exited).toBe(0);
  } finally {
    await server.command("resume");
  }
});
