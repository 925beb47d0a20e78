import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CONSTRAINED_PLAN, Load } from "@slotkeeper/testkit/load";
import { expect, test } from "vitest";

const LOAD = fileURLToPath(new URL("../bin/load.mjs", import.meta.url));
const run = (...args: string[]) => promisify(execFile)(process.execPath, [LOAD, ...args]);

test("the load program lists its options with --help, and refuses others with a sentence", async () => {
  const { stdout } = await run("--help");
  for (const flag of ["--url", "--token", "--hosts", "--waiters", "--seconds"]) expect(stdout).toContain(`  ${flag} `);
  await expect(run("--hots", "3")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^Unknown option '--hots'[\s\S]*npm run load -- --help/),
  });
});

test("the clients of the host with constraints send demands, and report what they used", async () => {
  let enough = () => {};
  const isEnough = new Promise<void>((resolve) => (enough = resolve));
  const bodies: Record<string, object[]> = { acquire: [], release: [] };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    bodies[request.url?.split("/").at(-1) ?? ""]?.push((await json(request)) as object);
    if (bodies["release"]?.length === 50) enough();
    response.end(JSON.stringify({ result: "granted", slotToken: "slot" }));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const load = new Load({ url: `http://127.0.0.1:${port}` }, [
    { ...CONSTRAINED_PLAN, holdMs: [0, 0], pauseMs: [0, 0] },
  ]);
  await isEnough;
  await load.stop();
  server.close();
  const amount = { tokens: expect.any(Number) };
  const keys = { user: expect.any(String), tenant: expect.any(String) };
  for (const ask of bodies["acquire"] ?? [])
    expect(ask).toMatchObject({ width: expect.any(Number), cost: amount, keys });
  for (const release of bodies["release"] ?? []) expect(release).toMatchObject({ slotToken: "slot", used: amount });
  expect(new Set(bodies["acquire"]?.map((ask) => (ask as { class?: string }).class))).toEqual(
    new Set(["chat", "batch", undefined]),
  );
});
