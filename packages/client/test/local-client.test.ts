// The semaphores of one machine, without a service.
import { localClient } from "@slotkeeper/client/node";
import { Machine } from "@slotkeeper/testkit/one-machine";
import { describeSemaphore } from "@slotkeeper/testkit/semaphore-contract";
import { expect, test } from "vitest";

describeSemaphore("localClient().semaphore", {
  open: async () => {
    const machine = new Machine(1);
    const keeper = localClient({ socket: machine.socket });
    return {
      make: (slots, name) => keeper.semaphore(name, slots),
      queued: async (name, waiters) => {
        const count = async () => {
          const { names = [] } = (await machine.state()) ?? {};
          return names.find((use) => use.name === `sem:${name}`)?.waiters.length ?? 0;
        };
        await expect.poll(count, { timeout: 10_000, interval: 5 }).toBe(waiters);
      },
      close: () => machine.close(),
    };
  },
  skip: {
    resize: "the first live user of a name fixes its capacity",
    close: "no process may close a semaphore for the others",
    counters: "only the keeper knows them",
  },
});

test("a process and a command share the slots; a slot survives the keeper and ends with the process", async () => {
  const machine = new Machine(1);
  try {
    const slot = await localClient({ socket: machine.socket }).semaphore("job", 1).acquire();
    const command = machine.start("plain", 0.01);
    const waits = async () => (((await machine.state())?.names[0]?.waiters.length ?? 0) > 0 ? true : undefined);
    await machine.until(waits, "the command waits");
    process.kill((await machine.state())?.pid ?? 0, "SIGKILL");
    await machine.until(waits, "the command waits at the next keeper");
    expect(machine.jobs.runs()).toEqual([]);
    expect(await slot.release()).toBe(true);
    expect(await command.exited).toBe(0);
  } finally {
    await machine.close();
  }
});

test("a folder that is not safe is refused before anything is asked", () => {
  expect(() => localClient({ socket: `/tmp/${"x".repeat(100)}/s` })).toThrow(/too long/);
});

test("without the command, the message says what to install", async () => {
  const machine = new Machine(1);
  try {
    const client = localClient({ socket: machine.socket, command: ["no-such-slotkeeper"], maxAttempts: 1 });
    await expect(client.semaphore("job", 1).acquire()).rejects.toThrow(/install @slotkeeper\/cli/);
  } finally {
    await machine.close();
  }
});
