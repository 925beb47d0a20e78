// `slotkeeper exec --name` without a service, as processes.
import { chmodSync } from "node:fs";
import { get } from "node:http";
import { constants } from "node:os";
import { describe, expect, test } from "vitest";
import { Command, cannotStart, slotkeeper } from "../command.ts";
import { TerminalSession } from "../terminal.ts";
import { done, exec, newMachine, RUNS, waiting } from "./machine.ts";

const shows = (terminal: TerminalSession, text: RegExp) =>
  expect.poll(() => terminal.text, { timeout: 20_000, interval: 20 }).toMatch(text);
const statusOf = (to: { port: string; path: string }) =>
  new Promise((resolve) => get(to, (answer) => resolve(answer.resume().statusCode)));
const NAME = ["--name", "gpu", "--as", "me"];

describe("the command", () => {
  test("has its own exit code, standard input and standard output", async () => {
    const command = exec(newMachine(), NAME, "sh", "-c", "cat; echo problem >&2; exit 42");
    command.process.stdin?.end("typed");
    expect(await done(command)).toEqual({ code: 42, out: "typed", err: "problem\n" });
  });

  test("gets name, slot and fence in its environment, and no key of a service", async () => {
    const machine = newMachine();
    const printed = "echo $SLOTKEEPER_NAME $SLOTKEEPER_SLOT ${SLOTKEEPER_FENCE:+fence} ${SLOTKEEPER_TOKEN:-none}";
    const key = { SLOTKEEPER_SOCKET: machine.socket, SLOTKEEPER_TOKEN: "secret" };
    const run = (...flags: string[]) =>
      done(slotkeeper(["exec", "--name", "a b", ...flags, "--", "sh", "-c", printed], key));
    expect(await run()).toMatchObject({ code: 0, out: "a b 1 fence none\n" });
    expect(await run("--pass-token")).toMatchObject({ code: 0, out: "a b 1 fence secret\n" });
  });

  test("each of several commands at once has a slot number of its own, the smallest that is free", async () => {
    const machine = newMachine();
    const script = "echo $SLOTKEEPER_SLOT; read line";
    const both = [1, 2].map(() => exec(machine, [...NAME, "--slots", "2"], "sh", "-c", script));
    const numbers = await Promise.all(both.map((command) => command.said(/\d/)));
    expect(numbers.map(([number]) => number).sort()).toEqual(["1", "2"]);
    const first = both.find(({ out }) => out === "1\n");
    first?.process.stdin?.end("\n");
    await first?.exited;
    expect((await done(exec(machine, NAME, "sh", "-c", "echo $SLOTKEEPER_SLOT"))).out).toBe("1\n");
  });

  test("may have a command line that is longer than any header", async () => {
    const command = exec(newMachine(), NAME, "sh", "-c", "echo ${#1}", "sh", "€".repeat(30_000));
    expect(await done(command)).toMatchObject({ code: 0, out: expect.stringMatching(/^(?:30000|90000)\n$/) });
  });

  test.each([
    ["it does not exist", "no-such-command"],
    ["there is no such file", "/no/such/command"],
    ["it is not executable", import.meta.filename],
    ["it is a folder", import.meta.dirname],
  ])("ends with 127 and a sentence if it cannot be started because %s", async (_, command) => {
    const err = cannotStart(command);
    expect(await done(exec(newMachine(), NAME, command))).toEqual({ code: 127, out: "", err });
  });

  test.each([
    ["its working directory was removed", 'mkdir "$0/gone"; cd "$0/gone"; rmdir "$0/gone"'],
    ["a variable has an unexpected value", "export SLOTKEEPER_HELD=5"],
    ["a list in a variable has an unexpected value", "export SLOTKEEPER_HELD=[null]"],
  ])("runs although %s", async (_, before) => {
    const machine = newMachine();
    const line = machine.exec([], ["echo", "ran"]);
    const command = new Command("bash", ["-c", `${before}; "$@"`, machine.folder, ...line]);
    expect(await done(command)).toMatchObject({ code: 0, out: "ran\n" });
  });

  test.skipIf(process.getuid?.() !== 0)("runs as a user without a name, as in a container", async () => {
    const machine = newMachine();
    chmodSync(machine.folder, 0o777);
    const asUser = ["--reuid", "12345", "--regid", "12345", "--clear-groups", "env", "-C", "/"];
    const command = new Command("setpriv", [...asUser, ...machine.exec([], ["echo", "ran"])]);
    expect(await done(command)).toMatchObject({ code: 0, out: "ran\n" });
  });

  test("needs a descriptor; if the limit of open files is lower, the message says so", async () => {
    const machine = newMachine();
    const line = machine.exec([], ["echo", "ran"]);
    const { code, out, err } = await done(new Command("bash", ["-c", 'ulimit -n 70; "$@"', "bash", ...line]));
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("Cannot give the command descriptor 77");
  });

  test.each([
    ["with its slot", []],
    ["with --close", ["--close"]],
  ])("gets the descriptors of the caller, %s, and the keeper gets none (FD1)", async (_, flags) => {
    const machine = newMachine();
    const lock = `${machine.folder}/lock`;
    const line = machine.exec(flags, ["bash", "-c", 'cat "$0" <&200; ls /proc/$$/fd']);
    const script = 'exec 200<>"$0"; flock 200; "$@" <(echo substituted)';
    const { code, out } = await done(new Command("bash", ["-c", script, lock, ...line]));
    expect(code).toBe(0);
    expect(out).toContain("substituted");
    const open = out.split("\n");
    for (const fd of ["0", "1", "2", "200"]) expect(open).toContain(fd);
    expect(open.includes("77")).toBe(flags.length === 0);
    // The keeper runs on.
    expect(await new Command("flock", ["-n", lock, "true"]).exited).toBe(0);
  });

  test.each(["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const)(
    "gets %s, if no terminal has sent it",
    async (signal) => {
      const script = `process.on(${JSON.stringify(signal)}, () => process.exit(9)); console.log("runs"); setInterval(() => {}, 1000)`;
      const command = exec(newMachine(), NAME, process.execPath, "-e", script);
      await command.said(/runs/);
      command.kill(signal);
      expect(await command.exited).toBe(9);
    },
  );

  test("a signal while it waits ends the wait, and the command never starts", async () => {
    const machine = newMachine();
    await exec(machine, NAME, ...RUNS).said(/runs/);
    const waits = exec(machine, NAME, "echo", "started");
    await waiting(machine, 1);
    waits.kill("SIGTERM");
    expect(await done(waits)).toMatchObject({ code: 128 + constants.signals.SIGTERM, out: "" });
    await waiting(machine, 0);
  });

  test("on a terminal it gets Ctrl+C once, and the line of a wait is shown and removed", async () => {
    const machine = newMachine();
    const holder = exec(machine, NAME, "sh", "-c", "echo runs; read line");
    await holder.said(/runs/);
    const script = `let n = 0; process.on("SIGINT", () => { n++; setTimeout(() => { console.log("got " + n); process.exit(3); }, 300); }); console.log("started"); setInterval(() => {}, 1000)`;
    const terminal = new TerminalSession(["exec", ...NAME, "--", process.execPath, "-e", script], {
      environment: { SLOTKEEPER_SOCKET: machine.socket },
    });
    await shows(terminal, /waiting for "gpu": 1 of 1 in use, place 1 of 1.* \(held by me since .+\)/);
    holder.process.stdin?.end("\n");
    await shows(terminal, /started/);
    expect(terminal.text).not.toContain("waiting");
    terminal.press("\u0003");
    expect(await terminal.exited).toBe(3);
    expect(terminal.text).toContain("got 1");
  });
});

describe("slots", () => {
  test("no slot within --timeout: exit code 6, and who holds it, as a sentence or as JSON", async () => {
    const machine = newMachine();
    await exec(machine, NAME, ...RUNS).said(/runs/);
    const flags = ["--name", "gpu", "--as", "you", "--timeout", "0.3"];
    // On a busy machine the time may be over before the first answer, which has the place.
    const text = /^Waited 300 ms for a slot of "gpu": (?:place 1 of 1, )?1 of 1 in use, held by me since .+\.\n$/;
    expect(await done(exec(machine, flags, "true"))).toMatchObject({ code: 6, err: expect.stringMatching(text) });
    const { code, err } = await done(exec(machine, [...flags, "--json"], "true"));
    expect([code, JSON.parse(err)]).toMatchObject([6, { error: "ACQUIRE_TIMEOUT" }]);
  });

  test("the first user sets the number; another number is refused, and the message says who set it", async () => {
    const machine = newMachine();
    await exec(machine, [...NAME, "--slots", "2"], ...RUNS).said(/runs/);
    expect(await done(exec(machine, [...NAME, "--slots", "3"], "true"))).toMatchObject({
      code: 8,
      err: '"gpu" is in use with 2 slots, set by me; this command asks for 3. Leave --slots out to use it as it is.\n',
    });
    expect(await done(exec(machine, NAME, "true"))).toMatchObject({ code: 0 });
  });

  test.each([
    [["--slots", "1000001"], "Expected --slots to be at most 1000000, got 1000001.\n"],
    [["--width", "2"], 'Expected --width to be at most 1, the number of slots of "gpu", got 2.\n'],
    [["--slots", "3", "--width", "4"], 'Expected --width to be at most 3, the number of slots of "gpu", got 4.\n'],
    [
      ["--as", "`me`".repeat(64)],
      expect.stringMatching(/^Expected --as to be a string of at most 255 char.+, got "`me`/),
    ],
  ])("a flag that the keeper cannot accept is wrong usage, and the message names it: %#", async (flags, err) => {
    expect(await done(exec(newMachine(), [...NAME, ...flags], "true"))).toEqual({ code: 2, out: "", err });
  });

  test("over a service, a name has at most as many slots, and the message is that of the service", async () => {
    const service = slotkeeper(["serve", "--listen", "127.0.0.1:0"]);
    const url = await service.url();
    const flags = [...NAME, "--slots", "1000001"];
    const refused = await done(exec(newMachine(), [...flags, "--url", url], "true"));
    expect(refused).toEqual({
      code: 8,
      out: "",
      err: `The service at ${url} refused the call with status 400: Expected \`limit\` to be at most 1000000, got 1000001.\n`,
    });
  });

  test("a command under a slot of the same name is refused; --nested runs it under that slot", async () => {
    const machine = newMachine();
    const inner = (...flags: string[]) => machine.exec(["--name", "gpu", ...flags], ["echo", "inner"]);
    // In any spelling that is the same name for a service.
    for (const spelling of ["gpu", "GPU", "Gpu."])
      expect(await done(exec(machine, NAME, ...inner("--name", spelling)))).toMatchObject({
        code: 2,
        err: expect.stringContaining("would wait for itself"),
      });
    expect(await done(exec(machine, NAME, ...inner("--nested")))).toMatchObject({ code: 0, out: "inner\n" });
    const other = exec(machine, ["--name", "cpu"], ...inner());
    expect(await done(other)).toMatchObject({ code: 0, out: "inner\n" });
  });

  test("what a command leaves behind keeps the slot, and status names it; with --close it does not", async () => {
    const machine = newMachine();
    const leaves = ["sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!"];
    const { code, out } = await done(exec(machine, NAME, ...leaves));
    expect(code).toBe(0);
    const status = await done(slotkeeper(["status", "--local", "--socket", machine.socket]));
    expect(status.out).toContain(`kept by what it started: process ${out.trim()}`);
    // The next keeper finds what is left, too.
    process.kill((await machine.state())?.pid ?? 0, "SIGKILL");
    expect(await done(exec(machine, [...NAME, "--timeout", "1"], "true"))).toMatchObject({ code: 6 });
    process.kill(Number(out), "SIGKILL");
    const closing = await done(exec(machine, [...NAME, "--close"], ...leaves));
    expect(await done(exec(machine, NAME, "true"))).toMatchObject({ code: 0 });
    process.kill(Number(closing.out), "SIGKILL");
  });

  test("two groups share by slot time: the only job of one waits at most one hold of the other", async () => {
    const machine = newMachine();
    const holder = exec(machine, ["--name", "job", "--as", "many"], "sh", "-c", "echo runs; read line");
    await holder.said(/runs/);
    for (let job = 0; job < 12; job++) machine.start("plain", 0.1, "many");
    await waiting(machine, 12);
    const one = machine.start("plain", 0.01, "one");
    await waiting(machine, 13);
    holder.process.stdin?.end("\n");
    expect(await one.exited).toBe(0);
    expect(machine.jobs.runs()[0]?.id).toBe(one.id);
  });
});

describe("status, top and serve", () => {
  const local = (machine: ReturnType<typeof newMachine>, ...args: string[]) =>
    done(slotkeeper([...args, "--socket", machine.socket]));

  test("status shows holders and waiters; without a keeper it says that there is none, and starts none", async () => {
    const machine = newMachine();
    expect((await local(machine, "status", "--local")).out).toContain("No command holds a slot of this machine");
    expect(await machine.state()).toBeUndefined();
    await exec(machine, NAME, ...RUNS).said(/runs/);
    exec(machine, NAME, "true");
    await waiting(machine, 1);
    const { out } = await local(machine, "status", "--local");
    expect(out).toMatch(/^gpu +slot 1 of 1 +me .+echo runs/m);
    expect(out).toMatch(/^gpu +waits, 1 of 1 +me .+true$/m);
    const { names } = JSON.parse((await local(machine, "status", "--local", "--json")).out);
    expect(names).toMatchObject([{ name: "sem:gpu", slots: 1, holders: [{ bucket: "me", slot: 1 }], waiters: [{}] }]);
  });

  test("top shows the keeper as a service; without a keeper it says so", async () => {
    const machine = newMachine();
    expect(await local(machine, "top", "--local")).toMatchObject({
      code: 7,
      err: expect.stringContaining("No keeper"),
    });
    await exec(machine, NAME, ...RUNS).said(/runs/);
    expect((await local(machine, "top", "--local")).out).toMatch(/sem:gpu +1 of 1/);
  });

  test("the dashboard of the keeper has an address with a key; without the key it shows no data", async () => {
    const machine = newMachine();
    await exec(machine, NAME, ...RUNS).said(/runs/);
    const command = slotkeeper(["top", "--local", "--dashboard", "--socket", machine.socket]);
    const [, url = "", key = ""] = await command.said(/dashboard +(\S+)\/\nkey +(\S+)/);
    const ask = (headers: Record<string, string>) => fetch(`${url}/api/v0/state`, { headers });
    expect((await ask({})).status).toBe(404);
    // `fetch` would change these paths, and the keeper reads them as the first one.
    const { port } = new URL(url);
    for (const path of ["/api/v0/local", "/./api/v0/local", "/x/../api/v0/local", "http://x/api/v0/local", "/readyz"]) {
      expect(await statusOf({ port, path })).toBe(404);
    }
    expect(await (await ask({ authorization: `Bearer ${key}` })).json()).toMatchObject({ hosts: [{ inFlight: 1 }] });
    expect((await fetch(`${url}/`)).headers.get("content-type")).toContain("text/html");
    command.kill("SIGINT");
    expect(await command.exited).toBe(0);
  });

  test("a person can take a slot away, or open the breaker: the command gets SIGTERM, and the waiting one ends", async () => {
    const machine = newMachine();
    const holder = exec(machine, NAME, ...RUNS);
    await holder.said(/runs/);
    const waits = exec(machine, NAME, "echo", "started");
    await waiting(machine, 1);
    const forward = slotkeeper(["top", "--local", "--dashboard", "--socket", machine.socket]);
    const [, url = "", key = ""] = await forward.said(/dashboard +(\S+)\/\nkey +(\S+)/);
    const operate = (...args: string[]) =>
      done(slotkeeper([...args, "--yes", "--url", url, `--internal-token=${key}`]));
    expect(await operate("breaker", "sem:gpu", "open")).toMatchObject({ code: 0 });
    expect(await done(waits)).toMatchObject({ code: 6, out: "", err: expect.stringContaining("its breaker is open") });
    const state = await fetch(`${url}/api/v0/state`, { headers: { authorization: `Bearer ${key}` } });
    const [{ slots }] = ((await state.json()) as { hosts: [{ slots: [{ slot: string }] }] }).hosts;
    const fence = slots[0].slot.split(".").at(-1) ?? "";
    expect(await operate("revoke", "sem:gpu", fence)).toMatchObject({ code: 0 });
    expect(await done(holder)).toMatchObject({ code: 9, err: expect.stringContaining("The command gets SIGTERM") });
    forward.kill("SIGINT");
    await forward.exited;
  });

  test("serve --socket is a keeper that stays, and ignores the variables of commands", async () => {
    const machine = newMachine();
    const ignored = { SLOTKEEPER_URL: "http://127.0.0.1:1", SLOTKEEPER_SLOT: "1", SLOTKEEPER_HELD: "[]" };
    const command = slotkeeper(["serve", "--socket", machine.socket], ignored);
    await command.said(/keeper +\S+/);
    expect(await done(exec(machine, NAME, "true"))).toMatchObject({ code: 0 });
    expect((await machine.state())?.pid).toBe(command.process.pid);
    expect(await local(machine, "serve", "--data", "x")).toMatchObject({ code: 2 });
    expect(await local(machine, "serve")).toMatchObject({ code: 4, err: expect.stringContaining("Another keeper") });
    command.kill("SIGTERM");
    expect(await command.exited).toBe(0);
    expect(machine.files()).toEqual([]);
  });
});
