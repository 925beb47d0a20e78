import { randomUUID } from "node:crypto";
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JournalEvent, openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { realClock } from "slotkeeper";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Calls, LIMITS, policyOf } from "./store-calls.ts";

/** What other programs may do to the journal's files, while it is open or before. */

let folder: string;
let path: string;
const opened: { close: () => Promise<void> }[] = [];
const events: JournalEvent["type"][] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "slotkeeper-journal-"));
  path = join(folder, "journal");
  events.length = 0;
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
  rmSync(folder, { recursive: true, force: true });
});

async function open(at = path) {
  const store = await openJournaledMemoryStore({
    path: at,
    clock: realClock,
    newTokenKey: randomUUID,
    retryMs: 20,
    beatMs: 20,
    onEvent: ({ type }) => events.push(type),
  });
  opened.push(store);
  return { ...store, calls: new Calls(store.store, policyOf(LIMITS)) };
}

/** The journal as a crash now would leave it, opened at another path. */
async function afterACrash() {
  const copy = join(folder, "copy");
  writeFileSync(copy, readFileSync(path));
  return open(copy);
}

describe("a journal that is open", () => {
  test.each([
    ["deleted", () => rmSync(path)],
    ["truncated", () => truncateSync(path, 0)],
    ["cut", () => truncateSync(path, statSync(path).size - 10)],
    ["added to", () => writeFileSync(path, "x", { flag: "a" })],
  ])(
    "and %s is noticed without traffic and written again, so a lease that was answered survives a crash",
    async (_how, harm) => {
      const { calls, health } = await open();
      expect(await calls.ask("a-1")).toMatchObject({ status: "HELD" });
      harm();
      await expect.poll(() => events.includes("unwritable")).toBe(true);
      await expect.poll(() => health().isWritable).toBe(true);
      const again = await afterACrash();
      expect(await again.calls.ask("a-1")).toMatchObject({ status: "HELD" });
    },
  );

  test("and is damaged at the same moment refuses the call instead of answering it", async () => {
    const { calls } = await open();
    await calls.ask("a-1");
    truncateSync(path, 0);
    await expect(calls.ask("b-1")).rejects.toThrow(/cannot be written/);
  });

  test("and is replaced by another file is given up: this process grants nothing any more", async () => {
    const { calls, health, close } = await open();
    await calls.ask("a-1");
    const other = join(folder, "other");
    writeFileSync(other, readFileSync(path));
    renameSync(other, path);
    const content = readFileSync(path, "utf8");
    await expect.poll(() => events.includes("lock-lost")).toBe(true);
    expect(health().isWritable).toBe(false);
    await expect(calls.ask("b-1")).rejects.toThrow(/cannot be written/);
    await close();
    expect(readFileSync(path, "utf8")).toBe(content);
  });

  test("and whose lock is removed creates the lock again, and a second process is refused as before", async () => {
    const { calls } = await open();
    const locks = () => readdirSync(folder).filter((name) => name.includes(".lock."));
    for (const name of locks()) rmSync(join(folder, name));
    await expect.poll(locks).toHaveLength(1);
    expect(events).not.toContain("lock-lost");
    await expect(open()).rejects.toThrow(/in use/);
    expect(await calls.ask("a-1")).toMatchObject({ status: "HELD" });
  });
});

describe("other files at the path of the journal", () => {
  test("a link that was planted for its successor is not followed, and a planted mode is not kept", async () => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "precious");
    symlinkSync(victim, `${path}.new`);
    await (await open()).calls.ask("a-1");
    expect(readFileSync(victim, "utf8")).toBe("precious");
    expect(lstatSync(path).isSymbolicLink()).toBe(false);
    const second = join(folder, "second");
    writeFileSync(`${second}.new`, "", { mode: 0o666 });
    await open(second);
    expect(statSync(second).mode & 0o777).toBe(0o600);
  });

  test("a folder is refused, and not changed", async () => {
    mkdirSync(path);
    await expect(open()).rejects.toThrow(/not a regular file/);
    expect(lstatSync(path).isDirectory()).toBe(true);
  });

  test("a socket, like anything else that is not a file, is refused, and not changed", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    await expect(open()).rejects.toThrow(/not a regular file/);
    expect(lstatSync(path).isSocket()).toBe(true);
    await new Promise((resolve) => server.close(resolve));
  });

  test("a dangling link is refused, and not changed", async () => {
    symlinkSync(join(folder, "nothing"), path);
    await expect(open()).rejects.toThrow(/not a regular file/);
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    expect(existsSync(join(folder, "nothing"))).toBe(false);
  });

  test("a file with a second hard link is refused, because the other name would have a lock of its own", async () => {
    const first = await open();
    await first.close();
    linkSync(path, join(folder, "second"));
    await expect(open()).rejects.toThrow(/more than one name/);
    await expect(open(join(folder, "second"))).rejects.toThrow(/more than one name/);
  });
});
