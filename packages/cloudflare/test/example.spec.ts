// The example, with the settings of its wrangler.jsonc, in real workerd.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startUpstream } from "@slotkeeper/testkit/upstream";
import { expect, test } from "vitest";
import { FLAGS, startWorker, stateOf, TOKEN } from "./worker.ts";

const FOLDER = fileURLToPath(new URL("../../../examples/cloudflare-durable-object/", import.meta.url));

interface Wrangler {
  readonly main: string;
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
  readonly durable_objects: { readonly bindings: readonly { readonly name: string; readonly class_name: string }[] };
  readonly migrations: readonly { readonly new_sqlite_classes: readonly string[] }[];
  readonly vars: { readonly [name: string]: string };
}

function settings(): Wrangler {
  const text = readFileSync(`${FOLDER}wrangler.jsonc`, "utf8");
  return JSON.parse(text.replaceAll(/^\s*\/\/.*$/gm, "")) as Wrangler;
}

async function startExample(more: { readonly [name: string]: string }) {
  const { main, compatibility_date: date, durable_objects: objects, vars, ...wrangler } = settings();
  expect(wrangler.compatibility_flags).toEqual(FLAGS);
  const bound = objects.bindings.map(({ name, class_name: className }) => [name, className] as const);
  expect(wrangler.migrations.flatMap(({ new_sqlite_classes: classes }) => classes)).toEqual(
    bound.map(([, name]) => name),
  );
  return startWorker({
    script: `export * from ${JSON.stringify(FOLDER + main)}; export { default } from ${JSON.stringify(FOLDER + main)};`,
    objects: Object.fromEntries(bound),
    bindings: { ...vars, ...more },
    date,
  });
}

test("the example: 200 parallel requests to an upstream that allows 4 at a time, without a failure", async () => {
  const upstream = await startUpstream(4, 20);
  const worker = await startExample({ UPSTREAM: upstream.url, INTERNAL_TOKEN: TOKEN, MAX_WAIT_MS: "120000" });
  const answers = Array.from({ length: 200 }, async () => {
    const response = await worker.ask("/file?page=2");
    return `${response.status} ${await response.text()}`;
  });
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["200 from upstream"]));
  expect([upstream.most, upstream.started]).toEqual([4, 200]);
  await expect.poll(async () => (await stateOf(worker, "127.0.0.1"))?.inFlight).toBe(0);
});

test("the example: an upstream that fails is paused by the breaker", async () => {
  const upstream = await startUpstream(0, 1);
  const worker = await startExample({ UPSTREAM: upstream.url });
  await expect.poll(async () => (await worker.ask("/")).status, { timeout: 10_000 }).toBe(503);
  expect(await (await worker.ask("/")).json()).toMatchObject({ code: "THROTTLED" });
});
