/** Walks through the tutorial: saves its files, runs its commands in order, and compares what they print. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Command, slotkeeper } from "../../../packages/cli/test/command.ts";
import { type CodeBlock, ROOT, readPage } from "./pages.ts";

const LEASE_SECONDS = 3;
const folder = mkdtempSync(join(tmpdir(), "slotkeeper-tutorial-"));

afterAll(() => rmSync(folder, { recursive: true }));

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** Figures differ from run to run; everything else is as the page says. */
const shapeOf = (output: string): string => output.replaceAll(/\d+/g, "0").replaceAll(/ +/g, " ").trim();

/** A shell in the reader's folder, or in the checkout. */
class Walk {
  readonly #ports: ReadonlyMap<string, string>;
  #upstream: Command | undefined;
  output = "";

  constructor(ports: ReadonlyMap<string, string>) {
    this.#ports = ports;
  }

  async take({ comment, code }: CodeBlock): Promise<void> {
    const text = this.#withPorts(code);
    const [, kind = "", argument = ""] = /^(\w+)(?:: (.*))?$/.exec(comment) ?? [];
    if (kind === "file") writeFileSync(join(folder, argument), text);
    else if (kind === "output") expect(shapeOf(this.output)).toBe(shapeOf(code));
    else if (kind === "step") await this.#step(argument, text);
  }

  #withPorts(code: string): string {
    let text = code;
    for (const [from, to] of this.#ports) text = text.replaceAll(from, to);
    return text;
  }

  async #step(kind: string, code: string): Promise<void> {
    if (kind.startsWith("skip")) return;
    if (kind === "upstream") return this.#startUpstream(code);
    if (kind === "checkout, after the lease")
      await new Promise((over) => setTimeout(over, LEASE_SECONDS * 1_000 + 500));
    const place = kind.startsWith("checkout") ? ROOT : folder;
    const url = `--url http://127.0.0.1:${this.#ports.get("8080")}`;
    const shell = new Command("sh", ["-c", `cd '${place}' && ${code.replace("status", `status ${url}`)}`]);
    expect([code, await shell.exited, shell.err.replaceAll(/^npm warn.*\n/gm, "")]).toEqual([
      code,
      Number(/exit code (\d+)/.exec(kind)?.[1] ?? 0),
      "",
    ]);
    this.output = shell.out;
  }

  async #startUpstream(code: string): Promise<void> {
    this.#upstream?.kill("SIGINT");
    await this.#upstream?.exited;
    this.#upstream = new Command("sh", ["-c", `cd '${folder}' && exec ${code}`]);
    await this.#upstream.said(/upstream on/);
  }
}

test("every step of the tutorial works as it says", async () => {
  mkdirSync(join(folder, "node_modules/@slotkeeper"), { recursive: true });
  symlinkSync(join(ROOT, "packages/client"), join(folder, "node_modules/@slotkeeper/client"));
  const service = slotkeeper(["serve", "--listen", "127.0.0.1:0"], {
    SLOTKEEPER_FAIR_QUEUE__ZOMBIE_TIMEOUT_SECONDS: String(LEASE_SECONDS),
  });
  const { port } = new URL(await service.url());
  const walk = new Walk(
    new Map([
      ["8080", port],
      ["9090", String(await freePort())],
    ]),
  );
  const { blocks } = readPage("docs/tutorial.md");
  expect(blocks.filter(({ comment }) => comment.startsWith("step: ")).length).toBeGreaterThan(10);
  for (const block of blocks) await walk.take(block);
});
