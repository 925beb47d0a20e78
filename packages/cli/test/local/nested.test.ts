// `slotkeeper exec` under a command that `slotkeeper exec` runs, as processes.
import type { Machine } from "@slotkeeper/testkit/one-machine";
import { describe, expect, test } from "vitest";
import { slotkeeper } from "../command.ts";
import { done, exec, newMachine, RUNS } from "./machine.ts";

/** The flags and the command of an inner `exec`. The last `--name` counts. */
const inner = (machine: Machine, flags: readonly string[], ...command: string[]) => machine.exec(flags, command);

/** The exit code of a command that waits half a second for a slot: 6 if another process holds it. */
const tried = async (machine: Machine, name: string) =>
  (await done(exec(machine, ["--name", name, "--timeout", "0.5", "--quiet"], "true"))).code;

describe("slots of several names, one inside the other (UNDER1)", () => {
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

describe("the variable that names the slots of a command (UNDER2)", () => {
  const HELD = "SLOTKEEPER_HELD";
  /** `exec` in the environment of an earlier command. */
  const execWith = (machine: Machine, held: string, flags: readonly string[], ...command: string[]) =>
    slotkeeper(["exec", ...flags, "--", ...command], { SLOTKEEPER_SOCKET: machine.socket, [HELD]: held });
  /** A command that prints it, and then runs until its input ends. */
  const SAYS = ["sh", "-c", `trap "" TERM; echo "$${HELD}"; read line`];

  /** Another command holds `x`: `--nested` waits as any other. When it has ended, `exec` gets the slot, and runs. */
  async function holdsNothing(machine: Machine, held: string): Promise<void> {
    const other = exec(machine, ["--name", "x"], ...RUNS);
    await other.said(/runs/);
    const nested = execWith(machine, held, ["--name", "x", "--nested", "--timeout", "0.5", "--quiet"], "echo", "ran");
    expect(await done(nested)).toMatchObject({ code: 6, out: "" });
    other.process.stdin?.end("\n");
    await other.exited;
    for (const flags of [[], ["--nested"]])
      expect(await done(execWith(machine, held, ["--name", "x", ...flags], "echo", "ran"))).toMatchObject({
        code: 0,
        out: "ran\n",
      });
  }

  test("a slot that has ended does not count", async () => {
    const machine = newMachine();
    const { out } = await done(exec(machine, ["--name", "x"], "sh", "-c", `echo "$${HELD}"`));
    expect(JSON.parse(out)).toHaveLength(1);
    await holdsNothing(machine, out.trim());
  });

  test("a slot that was revoked does not count, while its command runs on", async () => {
    const machine = newMachine();
    const holder = exec(machine, ["--name", "x"], ...SAYS);
    const [held] = await holder.said(/\[.+\]/);
    const forward = slotkeeper(["top", "--local", "--dashboard", "--socket", machine.socket]);
    const [, url = "", key = ""] = await forward.said(/dashboard +(\S+)\/\nkey +(\S+)/);
    const headers = { authorization: `Bearer ${key}` };
    const state = (await (await fetch(`${url}/api/v0/state`, { headers })).json()) as {
      hosts: [{ slots: [{ slot: string }] }];
    };
    const fence = state.hosts[0].slots[0].slot.split(".").at(-1) ?? "";
    const revoke = ["revoke", "sem:x", fence, "--yes", "--url", url, `--internal-token=${key}`];
    expect(await done(slotkeeper(revoke))).toMatchObject({ code: 0 });
    await holder.said(/The command gets SIGTERM/);
    await holdsNothing(machine, held);
    holder.process.stdin?.end("\n");
    expect(await holder.exited).toBe(9);
    forward.kill("SIGINT");
    await forward.exited;
  });

  test("a slot of another name does not count, nor does anything else in it", async () => {
    const machine = newMachine();
    const holder = exec(machine, ["--name", "y"], ...SAYS);
    const [held] = await holder.said(/\[.+\]/);
    const forged = [{ socket: machine.socket, name: "x" }, { holder: "", descriptor: 77 }, { holder: 5 }, "x"];
    await holdsNothing(machine, JSON.stringify([...(JSON.parse(held) as object[]), ...forged]));
    holder.process.stdin?.end("\n");
  });

  test("a slot that is held counts, also at the next keeper", async () => {
    const machine = newMachine();
    const holder = exec(machine, ["--name", "x"], ...SAYS);
    const [held] = await holder.said(/\[.+\]/);
    process.kill((await machine.state())?.pid ?? 0, "SIGKILL");
    const nested = execWith(machine, held, ["--name", "x", "--nested"], "echo", "ran");
    expect(await done(nested)).toMatchObject({ code: 0, out: "ran\n" });
    expect(await done(execWith(machine, held, ["--name", "x"], "echo", "ran"))).toMatchObject({ code: 2, out: "" });
    holder.process.stdin?.end("\n");
  });
});
