// What can be wrong with a machine: each case ends with a sentence or with success.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isNetworkType, keeperSocket, PROTOCOL } from "@slotkeeper/client/node/parts";
import { killGroup, type Machine } from "@slotkeeper/testkit/one-machine";
import { afterEach, describe, expect, test, vi } from "vitest";
import { BIN, Command, slotkeeper } from "../command.ts";
import { done, exec, newMachine, RUNS, waiting } from "./machine.ts";

afterEach(() => vi.unstubAllEnvs());
const NAME = ["--name", "gpu", "--as", "me"];
const isRoot = process.getuid?.() === 0;

function folderOf(machine: Machine): string {
  const folder = dirname(machine.socket);
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/** The answer of the keeper, which listens as the first one, to a call of any form. */
function acquire(machine: Machine, holder: object, body: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "x-slotkeeper-holder": JSON.stringify(holder) };
    const to = { socketPath: `${machine.socket}.1`, path: "/api/v0/fairqueue/acquire", method: "POST", headers };
    const sent = request(
      to,
      (answer) =>
        void answer
          .setEncoding("utf8")
          .toArray()
          .then((parts) => resolve(parts.join(""))),
    );
    sent.on("error", reject).end(JSON.stringify(body));
  });
}

/** Whether this process may mount a file system of its own. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "mount-"));
  const isMounted = spawnSync("mount", ["-t", "tmpfs", "none", folder]).status === 0;
  if (isMounted) spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true });
  return isMounted;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const succeeds = async (machine: Machine) =>
  expect(await done(exec(machine, NAME, "echo", "ran"))).toMatchObject({ code: 0, out: "ran\n" });

const refuses = async (machine: Machine, why: string) =>
  expect(await done(exec(machine, NAME, "echo", "ran"))).toMatchObject({
    code: 14,
    out: "",
    err: expect.stringContaining(why),
  });

describe("the folder of the socket", () => {
  test("other users have access: refused", async () => {
    const machine = newMachine();
    chmodSync(folderOf(machine), 0o755);
    await refuses(machine, "other users have access to it");
  });

  test.skipIf(!isRoot)("of another user: refused", async () => {
    const machine = newMachine();
    chownSync(folderOf(machine), 12_345, 12_345);
    await refuses(machine, "it belongs to the user with the number 12345");
  });

  test("a link in its path: refused", async () => {
    const machine = newMachine();
    mkdirSync(join(machine.folder, "real"), { mode: 0o700 });
    symlinkSync(join(machine.folder, "real"), dirname(machine.socket));
    await refuses(machine, "a part of its path is a link");
  });

  test("a path that the system would cut: refused", async () => {
    const flags = [...NAME, "--socket", `/tmp/${"x".repeat(90)}/k`];
    const command = slotkeeper(["exec", ...flags, "--", "true"]);
    expect(await done(command)).toMatchObject({ code: 14, err: expect.stringContaining("too long") });
  });

  test("a network file system is recognised by its type, and a local one is not", () => {
    expect([0x6969, 0xff534d42].map(isNetworkType)).toEqual([true, true]);
    expect([0xef53, 0x01021994].map(isNetworkType)).toEqual([false, false]);
  });

  test("the default does not depend on $TMPDIR and $XDG_RUNTIME_DIR", () => {
    vi.stubEnv("SLOTKEEPER_SOCKET", "");
    for (const variable of ["TMPDIR", "XDG_RUNTIME_DIR"]) vi.stubEnv(variable, "/elsewhere");
    expect(keeperSocket()).toBe(`/tmp/slotkeeper-${process.getuid?.()}/keeper`);
  });
});

describe("what an earlier keeper left", () => {
  test("a stale socket file", async () => {
    const machine = newMachine();
    folderOf(machine);
    const script = `require("node:net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
    spawnSync(process.execPath, ["-e", script, `${machine.socket}.7`]);
    await succeeds(machine);
    expect(machine.files()).toContain("s.8");
  });

  /** The file of a lease whose command and keeper were killed. */
  async function leftLease(machine: Machine): Promise<{ name: string; path: string; whole: string }> {
    const holder = machine.start("plain", 1000);
    await machine.until(() => machine.jobs.run(holder.id), "the start");
    const name = machine.files().find((file) => file.includes(".lease-")) ?? "";
    const path = join(dirname(machine.socket), name);
    const whole = readFileSync(path, "utf8");
    const { pid = 0 } = (await machine.state()) ?? {};
    killGroup(holder.process.pid ?? 0);
    await holder.exited;
    process.kill(pid, "SIGKILL");
    await machine.until(
      async () => ((await machine.state()) === undefined ? true : undefined),
      "the end of the keeper",
    );
    return { name, path, whole };
  }

  test.each([
    ["a record of another boot", (whole: string) => whole.replace(/"boot":"[^"]*"/, '"boot":"earlier"')],
    ["a record of a process that has ended", (whole: string) => whole.replaceAll(/holder-\w+/g, "holder-none")],
  ])("%s holds no slot", async (_, change) => {
    const machine = newMachine();
    const { name, path, whole } = await leftLease(machine);
    writeFileSync(path, change(whole));
    expect(await machine.start("plain", 0).exited).toBe(0);
    expect(machine.files()).not.toContain(name);
  });

  test.each([
    ["an empty record", () => ""],
    ["a torn record", (whole: string) => whole.slice(0, whole.length / 2)],
    ["a record that is another value", () => "5"],
    ["a record with other fields", (whole: string) => whole.replace(/"holder":\{.*?\}/, '"holder":{}')],
  ])("%s may hold a slot: no keeper starts until the file is deleted (FILE2)", async (_, damage) => {
    const machine = newMachine();
    const { name, path, whole } = await leftLease(machine);
    writeFileSync(path, damage(whole));
    const files = machine.files();
    const why = `Cannot use the folder ${dirname(path)}: the file ${name} of a lease is damaged, and its slot may be in use. End its command, or wait for its end, and then delete the file.`;
    await refuses(machine, `The keeper cannot be started: ${why}\n`);
    const served = await done(slotkeeper(["serve", "--socket", machine.socket]));
    expect(served).toEqual({ code: 14, out: "", err: `${why}\n` });
    expect(machine.files()).toEqual(files);
    rmSync(path);
    await succeeds(machine);
  });

  test("a damaged record holds no slot if it is older than the start of the machine, or was never completed", async () => {
    const machine = newMachine();
    const folder = folderOf(machine);
    const names = ["s.lease-a1", "s.lease-a2.new"];
    for (const name of names) writeFileSync(join(folder, name), "");
    utimesSync(join(folder, "s.lease-a1"), 1, 1);
    await succeeds(machine);
    expect(machine.files()).not.toEqual(expect.arrayContaining([expect.stringContaining(".lease-a")]));
  });

  test("files of others beside the socket stay", async () => {
    const machine = newMachine();
    const folder = folderOf(machine);
    const names = ["notes.txt", "lease-of-a-flat", "log-1", "s.txt", "s.lease-of-a-flat.pdf"];
    for (const name of names) {
      writeFileSync(join(folder, name), "");
      utimesSync(join(folder, name), 1, 1);
    }
    await succeeds(machine);
    process.kill((await machine.state())?.pid ?? 0, "SIGTERM");
    await succeeds(machine);
    expect(machine.files()).toEqual(expect.arrayContaining(names));
  });

  test("a start that was never finished", async () => {
    const machine = newMachine();
    writeFileSync(join(folderOf(machine), "s.starting"), "999999");
    await succeeds(machine);
  });
});

describe("keepers", () => {
  test("a keeper that is killed while it starts is replaced", async () => {
    const machine = newMachine();
    folderOf(machine);
    const command = exec(machine, NAME, "echo", "ran");
    const log = await machine.until(() => machine.files().find((file) => file.includes(".log-")), "a start");
    const found = spawnSync("pgrep", ["-f", `keeper --socket ${machine.socket} --log .*${log}`], { encoding: "utf8" });
    const pid = found.stdout.split("\n").map(Number).find(Boolean);
    if (pid !== undefined) process.kill(pid, "SIGKILL");
    expect(await done(command)).toMatchObject({ code: 0, out: "ran\n" });
  });

  test("50 commands at the same instant start one keeper, and all run", async () => {
    const machine = newMachine(5);
    const all = Array.from({ length: 50 }, () => machine.start("plain", 0));
    expect(await Promise.all(all.map(({ exited }) => exited))).toEqual(all.map(() => 0));
    expect(machine.jobs.mostAtOnce()).toBeLessThanOrEqual(5);
    expect(machine.files().filter((file) => /^s\.\d+$/.test(file))).toHaveLength(1);
  });

  test.runIf(process.env["SLOTKEEPER_LONG"])("200 commands at the same instant", { timeout: 300_000 }, async () => {
    const machine = newMachine(5);
    const all = Array.from({ length: 200 }, () => machine.start("plain", 0));
    expect(await Promise.all(all.map(({ exited }) => exited))).toEqual(all.map(() => 0));
    expect(machine.jobs.mostAtOnce()).toBeLessThanOrEqual(5);
  });

  test("no more space: a sentence, and no command runs", async () => {
    const machine = newMachine();
    const serve = ["serve", "--socket", machine.socket];
    const keeper = new Command("bash", ["-c", 'ulimit -f 0; exec "$@"', "bash", process.execPath, BIN, ...serve]);
    await keeper.said(/keeper +\S+/);
    const { code, out, err } = await done(exec(machine, NAME, "echo", "ran"));
    expect([code, out]).toEqual([14, ""]);
    expect(err).toContain("The keeper cannot write to");
    expect(machine.files().filter((file) => file.includes(".lease-"))).toEqual([]);
  });

  test.skipIf(!canMount())("no room for a socket, of the keeper or of the command: a sentence", async () => {
    const machine = newMachine();
    const folder = folderOf(machine);
    const mount = (options: string) => spawnSync("mount", ["-t", "tmpfs", "-o", `mode=700,${options}`, "none", folder]);
    try {
      mount("nr_inodes=4");
      await refuses(machine, `The keeper cannot be started: Cannot use the folder ${folder}: the disk is full.`);
      mount("ro");
      await refuses(machine, `Cannot create a socket in the folder ${folder}: the disk is full, or it is read-only.`);
    } finally {
      while (spawnSync("umount", [folder]).status === 0) {
        // Each mount has to be undone.
      }
    }
  });

  test("a program that is no keeper on the socket, or one of another protocol: a sentence", async () => {
    const machine = newMachine();
    folderOf(machine);
    const detail = "This command speaks protocol 1, and the keeper (version 9, process 1) speaks 2";
    const server = createServer((connection) => {
      const body = JSON.stringify({ code: "BAD_REQUEST", detail });
      connection.on("data", () =>
        connection.end(`HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
      );
    }).listen(`${machine.socket}.1`);
    try {
      expect(await done(exec(machine, NAME, "true"))).toMatchObject({ code: 14, err: `${detail}.\n` });
    } finally {
      server.close();
    }
  });

  test("the keeper of this version refuses another protocol and says what to stop", async () => {
    const machine = newMachine();
    const command = slotkeeper(["serve", "--socket", machine.socket]);
    await command.said(/keeper +\S+/);
    const text = await acquire(machine, { protocol: 9, id: "a" }, {});
    expect(text).toContain(`Stop it when its commands have ended: kill ${command.process.pid}`);
  });

  test("a call with wrong fields is refused, and neither ends the keeper nor removes a file", async () => {
    const machine = newMachine();
    const command = slotkeeper(["serve", "--socket", machine.socket]);
    await command.said(/keeper +\S+/);
    const precious = join(machine.folder, "precious");
    writeFileSync(precious, "");
    const sound = {
      protocol: PROTOCOL,
      id: "a1",
      socket: `${machine.socket}.holder-a1`,
      pid: 4_000_000,
      space: "",
      command: "",
    };
    const wrong = [
      { socket: undefined },
      { socket: 5 },
      { socket: precious },
      { id: "../../a" },
      { id: 7 },
      { pid: "x" },
    ];
    for (const fields of wrong) {
      const text = await acquire(machine, { ...sound, ...fields }, { hostname: "sem:a", requestId: "r", limit: 1 });
      expect(text).toContain("Expected a call of slotkeeper");
    }
    for (const body of [{ hostname: 5 }, { hostname: "sem:a", requestId: {} }, { queryToken: 5 }]) {
      expect(await acquire(machine, sound, body)).toContain("to be a string");
    }
    await succeeds(machine);
    expect((await machine.state())?.pid).toBe(command.process.pid);
    expect(existsSync(precious)).toBe(true);
  });

  test.skipIf(spawnSync("unshare", ["--pid", "--fork", "true"]).status !== 0)(
    "in another pid namespace the slot lasts as long as the command, also over another keeper",
    async () => {
      const machine = newMachine();
      await exec(machine, ["--name", "other"], ...RUNS).said(/runs/);
      const inside = ["unshare", "--pid", "--fork", "--kill-child"];
      const line = machine.exec(["--as", "inside"], ["bash", "-c", "exec 77>&-; echo runs; read line"]);
      const holder = new Command("unshare", [...inside.slice(1), ...line]);
      await holder.said(/runs/);
      const next = machine.start("plain", 0.01, "outside");
      await waiting(machine, 1);
      process.kill((await machine.state())?.pid ?? 0, "SIGKILL");
      await machine.until(async () => ((await machine.state()) === undefined ? undefined : true), "the next keeper");
      await waiting(machine, 1);
      expect(machine.jobs.runs()).toEqual([]);
      holder.kill("SIGKILL");
      expect(await next.exited).toBe(0);
    },
  );

  test("a keeper whose folder was removed ends, and the next command works", async () => {
    const machine = newMachine();
    const holder = exec(machine, NAME, ...RUNS);
    await holder.said(/runs/);
    const { pid = 0 } = (await machine.state()) ?? {};
    spawnSync("rm", ["-rf", dirname(machine.socket)]);
    await succeeds(machine);
    await machine.until(() => (isAlive(pid) ? undefined : true), "the end of the keeper without files");
  });
});
