import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnosis } from "@slotkeeper/server";
import { afterAll, describe, expect, it } from "vitest";
import { Command, slotkeeper } from "./command.ts";
import { TerminalSession } from "./terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-doctor-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Fewer connections than any machine allows. */
const SOUND = { listen: "127.0.0.1:0", limits: { connections: 100 } };

async function doctor(config: object, ...args: string[]) {
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ ...SOUND, ...config }));
  const command = slotkeeper(["doctor", "-c", file, ...args]);
  const code = await command.exited;
  return { code, out: command.out, err: command.err };
}

describe("slotkeeper doctor", () => {
  it("exits 13 with a problem: what was found, why it matters and how to fix it, without colours in a pipe", async () => {
    const { code, out, err } = await doctor({ rpc: { releaseFunc: "f" } }, "--listen", ":0");
    expect({ code, err }).toEqual({ code: 13, err: "" });
    expect(out).toMatch(/✗ address {8}OPEN TO EVERYONE.*\n {19}why {2}Anyone.*\n {19}fix {2}Set `auth\.enabled`/);
    expect(out).toMatch(/\n1 problem, 2 warnings\.\n$/);
    expect(out).not.toContain("\u001b");
  });

  it("exits 12 with warnings only; --json prints one object on one line, with the same shape for any findings", async () => {
    const { code, out } = await doctor({ rpc: { releaseFunc: "f" } }, "--json");
    expect([code, out.trimEnd().includes("\n")]).toEqual([12, false]);
    const diagnosis = JSON.parse(out) as Diagnosis;
    expect(Object.keys(diagnosis)).toEqual(["version", "config", "store", "severity", "findings", "skipped"]);
    expect(diagnosis).toMatchObject({ config: "file:config.json", store: "memory", severity: "warning", skipped: [] });
    const text = expect.any(String) as string;
    const [unused, address] = diagnosis.findings;
    expect(unused).toEqual({
      check: "configuration",
      severity: "warning",
      code: "UNUSED_KEY",
      found: text,
      why: text,
      fix: text,
    });
    expect(address).toEqual({ check: "address", severity: "ok", code: "OK", found: text });
  });

  it("fits a narrow terminal, and exits 0 with nothing to report", async () => {
    writeFileSync(join(folder, "sound.json"), JSON.stringify(SOUND));
    const session = new TerminalSession(["doctor", "-c", join(folder, "sound.json")], { columns: 50, rows: 30 });
    expect(await session.exited).toBe(0);
    await expect.poll(() => session.text).toContain("Nothing to report.");
    expect(session.text).toMatch(/^ {2}✓ keys {11}No shared key, no internal$\n^ {19}token\.$/m);
  });

  it("reports a limit of open files that is too low for the connections", async () => {
    const bin = fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url));
    const command = new Command("sh", [
      "-c",
      `ulimit -n 256 && exec "${process.execPath}" "${bin}" doctor --json --listen 127.0.0.1:0`,
    ]);
    expect(await command.exited).toBe(12);
    expect((JSON.parse(command.out) as Diagnosis).findings).toContainEqual(
      expect.objectContaining({ check: "limits", severity: "warning", code: "FEW_FILES" }),
    );
  });

  it("prints its help, and refuses flags that it does not know", async () => {
    const [help, wrong] = [slotkeeper(["doctor", "--help"]), slotkeeper(["doctor", "--fix"])];
    expect([await help.exited, await wrong.exited]).toEqual([0, 2]);
    expect(help.out).toMatch(/Usage[\s\S]*Examples[\s\S]*Exit codes/);
  });
});
