// The examples of the client, run: three processes, and spans of OpenTelemetry.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { withProgram } from "@slotkeeper/testkit/bundle";
import { Machine } from "@slotkeeper/testkit/one-machine";
import { expect, test } from "vitest";
import { startWorld } from "../../packages/client/test/fixture.ts";

test("one line moves a program from one process to three, and two jobs at a time stay two", async () => {
  const world = await startWorld();
  const file = fileURLToPath(new URL("../src/processes.ts", import.meta.url));
  await withProgram({ file }, async (program) => {
    expect(await atOnce(program, 1, {})).toEqual({ jobs: 6, most: 2 });
    expect(await atOnce(program, 3, { SLOTKEEPER_URL: world.direct })).toEqual({ jobs: 18, most: 2 });
  });
});

test("one variable moves a program from one machine to a service, and two jobs at a time stay two", async () => {
  const world = await startWorld();
  const machine = new Machine(1);
  const file = fileURLToPath(new URL("../src/one-machine.ts", import.meta.url));
  const commands = fileURLToPath(new URL("../../node_modules/.bin", import.meta.url));
  const local = { SLOTKEEPER_SOCKET: machine.socket, PATH: `${commands}:${process.env["PATH"]}` };
  try {
    await withProgram({ file }, async (program) => {
      expect(await atOnce(program, 3, local)).toEqual({ jobs: 18, most: 2 });
      expect(await atOnce(program, 3, { SLOTKEEPER_URL: world.direct })).toEqual({ jobs: 18, most: 2 });
    });
  } finally {
    await machine.close();
  }
});

test("the spans of two jobs show that one waited for the other, and the metrics count both", async () => {
  // Not bundled, because the SDK is CommonJS.
  const world = await startWorld();
  const program = fileURLToPath(new URL("../dist/opentelemetry.js", import.meta.url));
  const lines = (await output(program, { SLOTKEEPER_URL: world.direct })).trim().split("\n");
  expect(lines.toSorted()).toEqual([
    "slotkeeper.hold: released",
    "slotkeeper.hold: released",
    "slotkeeper.wait: granted",
    "slotkeeper.wait: granted, waited for the slotkeeper.hold of the other job",
    "slotkeeper_client_hold_seconds: 2 values",
    "slotkeeper_client_wait_seconds: 2 values",
  ]);
});

test("three processes share the tokens of a model API over the service: no more than the budget, and each gets a part", async () => {
  const program = fileURLToPath(new URL("../dist/model-api-fleet.js", import.meta.url));
  const text = await output(program, {}, ["--seconds", "5"]);
  const [, used = ""] = /^used +([\d.]+) % of what the budget allows$/m.exec(text) ?? [];
  expect(Number(used)).toBeLessThanOrEqual(100);
  // How equal the parts are depends on how much each process asks for. `order.prop.test.ts` proves the shares of those that wait.
  const shares = [...text.matchAll(/^(?:red|green|blue) +(\d+) tokens$/gm)].map(([, tokens]) => Number(tokens));
  expect(shares).toHaveLength(3);
  expect(Math.min(...shares)).toBeGreaterThan(0);
  const [, refused, all] = /^refused (\d+) of (\d+) requests$/m.exec(text) ?? [];
  expect(Number(refused)).toBeLessThanOrEqual(Number(all) / 50);
});

/** Runs this number of processes; how many jobs they did, and how many at the same time. */
async function atOnce(file: string, processes: number, environment: Record<string, string>) {
  const outputs = await Promise.all(Array.from({ length: processes }, () => output(file, environment)));
  const lines = outputs.join("").trim().split("\n");
  const events = lines
    .map((line) => line.split(" "))
    .map(([at, what]) => ({ at: Number(at), by: what === "start" ? 1 : -1 }));
  // At the same millisecond a slot was given back before it was taken.
  events.sort((a, b) => a.at - b.at || a.by - b.by);
  let running = 0;
  const most = Math.max(...events.map(({ by }) => (running += by)));
  return { jobs: lines.length / 2, most };
}

function output(file: string, environment: Record<string, string>, args: readonly string[] = []): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...args], { env: { ...process.env, ...environment } });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(text))));
  });
}
