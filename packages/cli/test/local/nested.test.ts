// `slotkeeper exec` under a command that `slotkeeper exec` runs, as processes.
import type { Machine } from "@slotkeeper/testkit/one-machine";
import { describe, expect, test } from "vitest";
import { done, exec, newMachine } from "./machine.ts";

/** The flags and the command of an inner `exec`. The last `--name` counts. */
const inner = (machine: Machine, flags: readonly string[], ...command: string[]) => machine.exec(flags, command);

/** The exit code of a command that waits half a second for a slot: 6 if another process holds it. */
const tried = async (machine: Machine, name: string) =>
  (await done(exec(machine, ["--name", name, "--timeout", "0.5", "--quiet"], "true"))).code;

describe("slots of several names, one inside the other", () => {
  test("what the command leaves behind keeps all of them", async () => {
    const machine = newMachine();
    const leaves = ["sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"];
    const third = inner(machine, ["--name", "z"], ...leaves);
    const { code, out } = await done(exec(machine, ["--name", "x"], ...inner(machine, ["--name", "y"], ...third)));
    expect(code).toBe(0);
    for (const name of ["x", "y", "z"]) expect([name, await tried(machine, name)]).toEqual([name, 6]);
    process.kill(Number(out), "SIGKILL");
    for (const name of ["x", "y", "z"]) expect([name, await tried(machine, name)]).toEqual([name, 0]);
  });

  test("if only the inner exec is killed, its command keeps both", async () => {
    const machine = newMachine();
    // The test's own end of standard input closes with the outer exec.
    const runs = ["sh", "-c", "echo $PPID $$; exec sleep 100 >/dev/null 2>&1"];
    const outer = exec(machine, ["--name", "x"], ...inner(machine, ["--name", "y"], ...runs));
    const [, innerExec, command] = await outer.said(/(\d+) (\d+)\n/);
    process.kill(Number(innerExec), "SIGKILL");
    await outer.exited;
    for (const name of ["x", "y"]) expect([name, await tried(machine, name)]).toEqual([name, 6]);
    process.kill(Number(command), "SIGKILL");
    for (const name of ["x", "y"]) expect([name, await tried(machine, name)]).toEqual([name, 0]);
  });

  test("with --close, an inner slot ends with its command, and the outer one does not", async () => {
    const machine = newMachine();
    const leaves = ["sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"];
    const { out } = await done(
      exec(machine, ["--name", "x"], ...inner(machine, ["--name", "y", "--close"], ...leaves)),
    );
    expect(await tried(machine, "y")).toBe(0);
    expect(await tried(machine, "x")).toBe(6);
    process.kill(Number(out), "SIGKILL");
  });

  test("--nested passes on the slot under which it runs", async () => {
    const machine = newMachine();
    const leaves = ["sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"];
    const nested = inner(machine, ["--name", "x", "--nested"], ...leaves);
    const { out } = await done(exec(machine, ["--name", "x"], ...inner(machine, ["--name", "y"], ...nested)));
    for (const name of ["x", "y"]) expect([name, await tried(machine, name)]).toEqual([name, 6]);
    process.kill(Number(out), "SIGKILL");
  });
});
