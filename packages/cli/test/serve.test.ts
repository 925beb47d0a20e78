import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { Command, slotkeeper } from "./command.ts";

const directory = mkdtempSync(join(tmpdir(), "slotkeeper-cli-"));
afterAll(() => rmSync(directory, { recursive: true }));

const FREE = ["--listen", "127.0.0.1:0"];
const serve = (...more: string[]) => slotkeeper(["serve", ...FREE, ...more]);

function configFile(config: object, name = "config.json"): string {
  const file = join(directory, name);
  writeFileSync(file, JSON.stringify(config));
  return file;
}

async function post(url: string, path: string, body: object): Promise<{ result: string; queryToken: string }> {
  const response = await fetch(`${url}/api/v0/fairqueue/${path}`, { method: "POST", body: JSON.stringify(body) });
  return (await response.json()) as { result: string; queryToken: string };
}

describe("start-up", () => {
  it("prints where it listens, which store, and a first request that works", async () => {
    const command = serve();
    const [, line = ""] = await command.said(/try it\s+(curl .*)\n/);
    expect(command.out).toMatch(/^slotkeeper \S+\n {2}dashboard {2}http:\/\/127\.0\.0\.1:\d+\/\n/);
    expect(command.out).toMatch(/listening {2}http:\/\/127\.0\.0\.1:\d+\n {2}store {6}memory/);
    const { stdout } = spawnSync("sh", ["-c", line], { encoding: "utf8" });
    expect(JSON.parse(stdout)).toMatchObject({ result: "granted" });
  });

  it("uses the key from the environment in its first request, and never prints it", async () => {
    const environment = { SLOTKEEPER_AUTH__ENABLED: "true", SLOTKEEPER_AUTH__TOKEN: "hush-hush" };
    const command = slotkeeper(["serve", ...FREE], environment);
    const [, line = ""] = await command.said(/try it\s+(curl .*)\n/);
    const { stdout } = spawnSync("sh", ["-c", line], { encoding: "utf8", env: { ...process.env, ...environment } });
    expect(JSON.parse(stdout)).toMatchObject({ result: "granted" });
    expect(command.out + command.err).not.toContain("hush-hush");
  });

  it("prints the same as one line of JSON with --json", async () => {
    const command = serve("--json");
    const [line] = await command.said(/\{.*"event":"listening".*\}/);
    expect(JSON.parse(line)).toMatchObject({
      event: "listening",
      url: expect.stringMatching(/^http/),
      store: expect.any(String),
    });
  });

  it.each(["--data", "--listen", "--config", "--wait-for-store"])(
    "refuses an empty %s, for serve and doctor, and exits 2",
    async (flag) => {
      const commands = [slotkeeper(["serve", flag, ""])];
      if (flag !== "--wait-for-store") commands.push(slotkeeper(["doctor", flag, ""]));
      for (const command of commands) {
        expect(await command.exited).toBe(2);
        expect(command.err).toMatch(new RegExp(`^${flag} is empty: give a value, or leave the flag out\\.\n`));
      }
    },
  );

  it("every command refuses an empty value of every flag", async () => {
    const lines = [
      ["migrate", "--config", ""],
      ["acquire", "--host", ""],
      ["acquire", "--host", "h", "--token", ""],
      ["exec", "--host", "h", "--url", "", "--", "true"],
      ["release", "token", "--status", ""],
      ["status", "--internal-token", ""],
      ["top", "--url", ""],
    ];
    const commands = lines.map((line) => slotkeeper(line));
    expect(await Promise.all(commands.map(({ exited }) => exited))).toEqual(lines.map(() => 2));
    for (const [at, { err }] of commands.entries()) {
      const flag = lines[at]?.[(lines[at]?.indexOf("") ?? 0) - 1] ?? "";
      expect(err).toMatch(
        new RegExp(
          `^${flag} is empty: give a value, or leave the flag out\\.\nRun \`slotkeeper ${lines[at]?.[0] ?? ""} --help\``,
        ),
      );
    }
  });

  it("names the wrong flag or argument, with its value", async () => {
    for (const [line, code, words] of [
      [["serve", "--wait-for-store=1.2.3"], 3, 'to be a number, got "1.2.3" (flag)'],
      [["serve", "--listen", "no-such-host.invalid:0"], 4, "Cannot listen on no-such-host.invalid: "],
      [["acquire", "--host", "h", "--timeout", "Infinity"], 2, "Expected --timeout to be a number of seconds above 0"],
      [["status", "--url", "http://127.0.0.1:1"], 7, "is unavailable: bad port."],
    ] as const) {
      const command = slotkeeper(line);
      expect(await command.exited).toBe(code);
      expect(command.err).toContain(words);
    }
  });

  it("reports that the port is in use, and exits 4", async () => {
    const url = await serve().url();
    const second = slotkeeper(["serve", "--listen", new URL(url).host]);
    expect(await second.exited).toBe(4);
    const port = Number(new URL(url).port);
    expect(second.err).toContain(`Port ${port} on 127.0.0.1 is in use`);
    expect(second.err).toContain(`--listen 127.0.0.1:${port + 1}`);
  });

  it("refuses a journal of a newer version without the advice to cut it, and exits 1", async () => {
    const journal = join(directory, "newer.journal");
    writeFileSync(journal, "slotkeeper-journal 3\n");
    const command = serve("--data", journal);
    expect(await command.exited).toBe(1);
    expect(command.err).toContain("a newer version of slotkeeper (format 3, this one reads up to 2)");
    expect(command.err).not.toMatch(/cut|damaged/);
  });

  it("lists every problem of its configuration, and exits 3", async () => {
    const command = slotkeeper(["serve", "-c", configFile({ colour: 1, fairQueue: { maxWaitMs: "x" } })]);
    expect(await command.exited).toBe(3);
    expect(command.err).toContain("2 problems");
    expect(command.err).toContain("Unknown key `colour`");
    expect(command.err).toContain("`fairQueue.maxWaitMs`");
  });
});

describe("the address", () => {
  it("that was not configured is reachable from this machine only, and the banner says how to open it", async () => {
    const command = slotkeeper(["serve", "--json"], { SLOTKEEPER_LISTEN: "127.0.0.1:0" });
    const [line] = await command.said(/\{.*"event":"listening".*\}/);
    expect(JSON.parse(line)).toMatchObject({ address: "127.0.0.1" });
    const open = slotkeeper(["serve", "--listen", ":0"]);
    await open.said(/every other address of this machine, port \d+/);
    await open.said(/OPEN TO EVERYONE/);
  });
});

describe("a database that cannot be used", () => {
  it.each([
    ["postgres://u:hush@127.0.0.1:1/d", 5, "Cannot reach the database at 127.0.0.1:1: no server listens there."],
    ["nonsense", 3, "`backend.postgres.dsn` cannot be used. Expected the dsn to be like"],
  ])("by %s is explained, and exits %i", async (dsn, code, words) => {
    const command = serve("-c", configFile({ backend: { startWaitSeconds: 0, postgres: { dsn } } }));
    expect(await command.exited).toBe(code);
    expect(command.err).toContain(words);
    expect(command.err).not.toContain("hush");
  });
});

describe("a process that may open few files", () => {
  it("reports it at start, and refuses connections before it reaches the limit: no connection waits without an answer", async () => {
    const bin = fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url));
    const command = new Command("bash", [
      "-c",
      'ulimit -n 256; exec "$@"',
      "bash",
      process.execPath,
      bin,
      "serve",
      ...FREE,
    ]);
    const url = await command.url();
    // Connections that are cut without an answer, because too many are being refused already, are tried again.
    const livez = () =>
      fetch(`${url}/livez`, { signal: AbortSignal.timeout(300) }).then(({ status }) => status, String);
    await command.said(/128 connections are served/);
    const { port, hostname } = new URL(url);
    const sockets = Array.from({ length: 300 }, () =>
      connect({ port: Number(port), host: hostname, allowHalfOpen: true }),
    );
    for (const socket of sockets) socket.on("error", () => {});
    try {
      await command.said(/"msg":"limit reached","limit":"connections","most":128/);
      await expect.poll(livez).toBe(503);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
    await expect.poll(livez).toBe(200);
  });
});

describe("a log that is not read", () => {
  const DEBUG = { SLOTKEEPER_LOG_LEVEL: "debug" };
  const lostLines = async (url: string) =>
    Number(/^slotkeeper_log_lines_lost_total (\d+)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1]);

  it("because its reader left does not end the service: the lines are lost and counted", async () => {
    const command = slotkeeper(["serve", ...FREE], DEBUG);
    const url = await command.url();
    command.process.stderr?.destroy();
    for (let at = 0; at < 20; at++) await fetch(`${url}/nowhere`);
    expect(await lostLines(url)).toBeGreaterThan(0);
    expect(command.process.exitCode).toBeNull();
  });

  it("because its reader is blocked neither stops the service nor fills its memory", async () => {
    const command = slotkeeper(["serve", ...FREE], DEBUG);
    const url = await command.url();
    command.process.stderr?.pause();
    command.process.stdout?.pause();
    const body = JSON.stringify({ hostname: "h", ipBucket: "b".repeat(250) });
    const call = () => fetch(`${url}/api/v0/fairqueue/acquire`, { method: "POST", body }).then((reply) => reply.text());
    for (let round = 0; round < 40 && (await lostLines(url)) === 0; round++) {
      await Promise.all(Array.from({ length: 100 }, call));
    }
    expect(await lostLines(url)).toBeGreaterThan(0);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });
});

describe("the command line", () => {
  it.each([
    [[], 2, /Expected a command/],
    [["dance"], 2, /^Unknown command `dance`\. There are: (?=.*\bserve\b)(?=.*\btop\b)[a-z, ]+\.\n$/],
    [
      ["serve", "--colour"],
      2,
      /^.*--colour.*\nKnown flags: .*--listen.*\nRun `slotkeeper serve --help` for its options\.\n$/,
    ],
    [["serve", "extra"], 2, /extra/],
    [["--help"], 0, /Usage[\s\S]*Examples[\s\S]*Exit codes/],
    [["serve", "--help"], 0, /Usage[\s\S]*Examples/],
    [["--version"], 0, /^\d+\.\d+\.\d+\n$/],
  ])("%j exits %i", async (args, code, text) => {
    const command = slotkeeper(args);
    expect(await command.exited).toBe(code);
    expect(code === 0 ? command.out : command.err).toMatch(text);
  });

  it("reports which Node version it needs if this one is too old", async () => {
    const old = `data:text/javascript,${encodeURIComponent('Object.defineProperty(process.versions,"node",{value:"20.9.0"})')}`;
    const command = slotkeeper(["--version"], { NODE_OPTIONS: `--import=${old}` });
    expect([await command.exited, command.err]).toEqual([
      1,
      "slotkeeper needs Node 20.16 or later; this is Node 20.9.0.\n",
    ]);
  });

  it("--print-config shows values, origins and no secret; --json for machines", async () => {
    const args = [
      "serve",
      "-c",
      configFile({ auth: { enabled: true, token: "hush" } }),
      "--listen",
      ":1",
      "--print-config",
    ];
    const command = slotkeeper(args, { SLOTKEEPER_LOG_LEVEL: "warn" });
    expect(await command.exited).toBe(0);
    expect(command.out).toMatch(/^listen +":1" +flag$/m);
    expect(command.out).toMatch(/^logLevel +"warn" +environment$/m);
    expect(command.out).toMatch(/^auth\.enabled +true +file config\.json$/m);
    expect(command.out).not.toContain("hush");
    const machine = slotkeeper([...args, "--json"]);
    await machine.exited;
    expect(JSON.parse(machine.out)).toContainEqual({ key: "listen", value: ":1", origin: "flag" });
  });

  it("reports what to do if nothing has been built", () => {
    const bin = join(directory, "package", "bin");
    mkdirSync(bin, { recursive: true });
    copyFileSync(fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url)), join(bin, "slotkeeper.mjs"));
    const { status, stderr } = spawnSync(process.execPath, [join(bin, "slotkeeper.mjs")], { encoding: "utf8" });
    expect([status, stderr]).toEqual([1, expect.stringContaining("npm run build")]);
  });
});

describe("signals", () => {
  const LONG = { fairQueue: { maxSlotPerHost: 1, pollWindowMs: 3_600_000, maxWaitMs: 3_600_000 } };

  it("SIGTERM turns /readyz to 503, answers held polls with pending, and exits 0", async () => {
    const command = serve("-c", configFile(LONG));
    const url = await command.url();
    expect((await post(url, "acquire", { hostname: "h", ipBucket: "a", waitMs: 1000 })).result).toBe("granted");
    const { queryToken } = await post(url, "acquire", { hostname: "h", ipBucket: "b" });
    const held = post(url, "acquire", { queryToken });
    await fetch(`${url}/livez`);
    command.kill("SIGTERM");
    await command.said(/"msg":"stopping"/);
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await held).result).toBe("pending");
    expect(await command.exited).toBe(0);
  });

  it("SIGTERM answers new requests for `shutdown.graceMs`, then refuses them", async () => {
    const command = serve("-c", configFile({ shutdown: { graceMs: 2_500 } }, "grace.json"));
    const url = await command.url();
    command.kill("SIGTERM");
    await command.said(/"msg":"stopping"/);
    const startedAt = performance.now();
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect(await command.exited).toBe(0);
    expect(performance.now() - startedAt).toBeGreaterThan(2_000);
  });

  it("SIGINT stops gracefully, too", async () => {
    const command = serve();
    await command.url();
    command.kill("SIGINT");
    expect(await command.exited).toBe(0);
  });

  it("after the stop nothing keeps the process running, however late its deadline is", async () => {
    const script = `
      const { Service } = await import(${JSON.stringify(new URL("../../server/dist/index.js", import.meta.url).href)});
      const log = { write: () => {}, isJson: true, hasColours: false };
      const service = await Service.start({ flags: { listen: "127.0.0.1:0" }, log });
      await fetch(service.url + "/api/v0/fairqueue/acquire", { method: "POST", body: '{"hostname":"h"}' });
      await service.stop({ graceMs: 0, deadlineMs: 3_600_000 });
    `;
    const command = new Command(process.execPath, ["--input-type=module", "-e", script]);
    expect(await command.exited).toBe(0);
  });

  it("a second signal exits at once", async () => {
    const command = serve();
    await command.url();
    command.kill("SIGTERM");
    await command.said(/"msg":"stopping"/);
    command.kill("SIGTERM");
    expect(await command.exited).toBe(143);
    expect(command.err).not.toContain('"msg":"stopped"');
  });

  it("SIGHUP reads the file again; a bad one is refused and the service continues", async () => {
    const file = configFile(LONG, "live.json");
    const command = serve("-c", file);
    const url = await command.url();
    await post(url, "acquire", { hostname: "h", ipBucket: "a", waitMs: 1000 });
    const waiting = post(url, "acquire", { hostname: "h", ipBucket: "b", waitMs: 3_600_000 });
    await fetch(`${url}/livez`);
    configFile({ fairQueue: { maxSlotPerHost: "many" } }, "live.json");
    command.kill("SIGHUP");
    await command.said(/the new configuration was refused/);
    configFile({ fairQueue: { ...LONG.fairQueue, maxSlotPerHost: 2 } }, "live.json");
    command.kill("SIGHUP");
    expect((await waiting).result).toBe("granted");
  });
});

describe("a crash", () => {
  it("is logged without the tokens and keys in it, and exits 1", async () => {
    const script = `
      const { main } = await import(${JSON.stringify(new URL("../dist/main.js", import.meta.url).href)});
      const write = process.stdout.write.bind(process.stdout);
      const boom = () => { throw new Error("boom: slot_abcdefghijklmnopqrstuvwxyz012345 hush-hush", { cause: new Error("hush-hush") }); };
      process.stdout.write = (text, ...rest) => {
        if (String(text).includes("http://")) setTimeout(boom);
        return write(text, ...rest);
      };
      void main(["serve", "--listen", "127.0.0.1:0"]);
    `;
    const environment = { SLOTKEEPER_INTERNAL_API_TOKEN: "hush-hush" };
    const command = new Command(process.execPath, ["--input-type=module", "-e", script], environment);
    expect(await command.exited).toBe(1);
    expect(command.err).toContain("boom");
    expect(command.out + command.err).not.toMatch(/abcdefghijklmnop|hush/);
  });
});

describe("npm start", () => {
  it("serves, and a SIGTERM to npm reaches the server", async () => {
    const command = new Command("npm", ["start"], { SLOTKEEPER_LISTEN: "127.0.0.1:0" });
    const url = await command.url();
    expect((await fetch(url)).status).toBe(200);
    command.kill("SIGTERM");
    await command.said(/"msg":"stopped"/);
    await command.exited;
    await expect(fetch(`${url}/livez`)).rejects.toThrow();
  });
});
