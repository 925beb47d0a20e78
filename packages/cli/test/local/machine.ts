/** A machine of its own for each test, closed after it. */
import { Machine } from "@slotkeeper/testkit/one-machine";
import { afterEach } from "vitest";
import { type Command, slotkeeper } from "../command.ts";

const machines = new Set<Machine>();

export function newMachine(slots = 1): Machine {
  const machine = new Machine(slots);
  machines.add(machine);
  return machine;
}

afterEach(async () => {
  for (const machine of machines) await machine.close();
  machines.clear();
});

/** `slotkeeper exec` on this machine. */
export function exec(machine: Machine, flags: readonly string[], ...command: string[]): Command {
  return slotkeeper(["exec", ...flags, "--", ...command], { SLOTKEEPER_SOCKET: machine.socket });
}

export async function done(command: Command): Promise<{ code: unknown; out: string; err: string }> {
  const code = await command.exited;
  return { code, out: command.out, err: command.err };
}

/** A command that says that it runs, and then runs until its standard input ends: at the latest with its test. */
export const RUNS = ["sh", "-c", "echo runs; read line"] as const;

/** Waits until this number of commands waits for a slot. */
export function waiting(machine: Machine, count: number): Promise<true> {
  const isReached = async () => (await machine.state())?.names.some(({ waiters }) => waiters.length === count);
  return machine.until(async () => ((await isReached()) === true ? true : undefined), `${count} waiting`);
}
