// A command that is stopped (Ctrl+Z) while it waits, as processes.
import { readFileSync, readlinkSync } from "node:fs";
import { request } from "node:http";
import { PROTOCOL } from "@slotkeeper/client/node/parts";
import type { Machine } from "@slotkeeper/testkit/one-machine";
import { expect, test } from "vitest";
import { type Command, slotkeeper } from "../command.ts";
import { done, exec, newMachine, RUNS, waiting } from "./machine.ts";

const NAME = ["--name", "gpu", "--as", "me"];

/** Stops the process, and resolves when the system says that it does not run any more. */
async function stop(machine: Machine, { process: { pid } }: Command): Promise<void> {
  process.kill(pid ?? 0, "SIGSTOP");
  const isStopped = () => /\) T /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  await machine.until(() => (isStopped() ? true : undefined), "the stop");
}

/** A call to the keeper, which listens as the first one, of a process that has no socket. It lives as long as this test. */
function callAs(machine: Machine, id: string) {
  const { pid } = process;
  const space = readlinkSync("/proc/self/ns/pid");
  const about = { protocol: PROTOCOL, id, socket: `${machine.socket}.holder-${id}`, pid, space, command: id };
  const headers = { "x-slotkeeper-holder": JSON.stringify(about) };
  return (path: string, body: object): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const to = { socketPath: `${machine.socket}.1`, path: `/api/v0/${path}`, method: "POST", headers };
      // The answer of `hold` does not end: its first part is enough.
      const sent = request(to, (answer) => {
        const { statusCode: status = 0 } = answer.on("error", () => {});
        answer.once("data", (part: Buffer) => resolve({ status, text: part.toString() }));
      });
      sent.on("error", reject).end(JSON.stringify(body));
    });
}

test("it takes no slot: the next one runs; when it continues, it waits again at its place", async () => {
  const machine = newMachine();
  const holder = exec(machine, NAME, ...RUNS);
  await holder.said(/runs/);
  const stopped = exec(machine, NAME, "echo", "the stopped one runs");
  await waiting(machine, 1);
  const second = exec(machine, NAME, ...RUNS);
  await waiting(machine, 2);
  const third = exec(machine, NAME, ...RUNS);
  await waiting(machine, 3);
  await stop(machine, stopped);
  holder.process.stdin?.end("\n");
  // The keeper grants the slot to the stopped one first: its call is open.
  await second.said(/runs/);
  stopped.kill("SIGCONT");
  await waiting(machine, 2);
  expect(stopped.out).toBe("");
  second.process.stdin?.end("\n");
  // It came before the third one, so it runs first; the third one runs until its input ends.
  expect(await done(stopped)).toMatchObject({ code: 0, out: "the stopped one runs\n" });
  await third.said(/runs/);
});

test("a slot that was confirmed stays; one that was not is taken back, and cannot be confirmed any more", async () => {
  const machine = newMachine();
  const command = slotkeeper(["serve", "--socket", machine.socket]);
  await command.said(/keeper +\S+/);
  const [uses, absent, next] = ["a1", "b2", "c3"].map((id) => callAs(machine, id)) as [Call, Call, Call];
  /** A call may end before the slot is free. The same `requestId` continues the wait. */
  const granted = async (call: Call, hostname: string): Promise<{ slotToken: string }> => {
    for (;;) {
      const ask = { hostname, requestId: "r", limit: 1, waitMs: 5_000, confirms: true };
      const { slotToken } = JSON.parse((await call("fairqueue/acquire", ask)).text) as { slotToken?: string };
      if (slotToken !== undefined) return { slotToken };
    }
  };
  const used = await granted(uses, "sem:used");
  expect(await uses("local/hold", used)).toMatchObject({ status: 200 });
  const lost = await granted(absent, "sem:lost");
  // This grant comes when the second one is taken back, and the time of the first one was over before.
  await granted(next, "sem:lost");
  expect(await absent("local/hold", lost)).toMatchObject({ status: 410, text: expect.stringContaining("SLOT_LOST") });
  expect(await uses("local/hold", used)).toMatchObject({ status: 200 });
});

type Call = ReturnType<typeof callAs>;
