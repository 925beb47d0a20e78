import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Makes every import of OpenTelemetry fail, as if it were not installed. */
const HOOK = `export async function resolve(name, context, next) {
  if (!name.startsWith("@opentelemetry/")) return next(name, context);
  throw Object.assign(new Error("Cannot find package " + name), { code: "ERR_MODULE_NOT_FOUND" });
}`;

const PROGRAM = `
  await import("@slotkeeper/client/node");
  for (const framework of ["express", "fastify", "hono"]) await import("@slotkeeper/client/" + framework);
  const missing = await import("@slotkeeper/client/opentelemetry").then(() => undefined, (error) => error.code);
  const { SlotClient } = await import("@slotkeeper/client");
  const { Service } = await import("@slotkeeper/server");
  const logged = [];
  const log = { write: (line) => logged.push(JSON.parse(line)), isJson: true, hasColours: false };
  const service = await Service.start({ flags: { listen: "127.0.0.1:0" }, environment: {}, log });
  const result = await new SlotClient({ url: service.url }).run({ hostname: "example.com" }, () => "done");
  await service.stop();
  const loaded = await import("@opentelemetry/api").then(() => true, () => false);
  console.log(JSON.stringify({ loaded, missing, result, warnings: logged.filter(({ level }) => level !== "info") }));
`;

function moduleOf(text: string): string {
  return `data:text/javascript,${encodeURIComponent(text)}`;
}

async function run(...flags: string[]): Promise<unknown> {
  const cwd = fileURLToPath(new URL("..", import.meta.url));
  const args = [...flags, "--input-type=module", "--eval", PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd });
  return JSON.parse(stdout);
}

test("without `@opentelemetry/api` client and service load and work, without a warning", async () => {
  const register = `import { register } from "node:module"; register(${JSON.stringify(moduleOf(HOOK))});`;
  const expected = { loaded: false, missing: "ERR_MODULE_NOT_FOUND", result: "done", warnings: [] };
  expect(await run("--import", moduleOf(register))).toEqual(expected);
});

test("with `@opentelemetry/api`, but without a provider, they work the same", async () => {
  expect(await run()).toEqual({ loaded: true, result: "done", warnings: [] });
});
