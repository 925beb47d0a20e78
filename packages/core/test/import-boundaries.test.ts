/**
 * The linter checks which packages may import which, and which globals a package may use. A rule that matches nothing
 * looks the same as a clean repository. So this test plants violations of every rule in a copy of the folders and lints
 * them.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const value = (from: string) => `export { x } from "${from}";\n`;
const type = (from: string) => `export type { X } from "${from}";\n`;

/** For each package, or folder of one: imports that its sources must not contain, and imports that they may contain. */
const imports: Record<string, { refused: string[]; accepted: string[] }> = {
  core: {
    refused: ["node:fs", "node:fs/promises", "pg", "slotkeeper", "@slotkeeper/queue", "../../queue/src/index.ts"].map(
      value,
    ),
    accepted: ["./gate.ts", "../clock.ts"].map(value),
  },
  protocol: {
    refused: ["node:fs", "ajv", "slotkeeper", "@slotkeeper/queue", "../../queue/src/index.ts"].map(value),
    accepted: ["typebox", "./limits.ts"].map(value),
  },
  queue: {
    refused: ["node:fs", "pg", "slotkeeper/effects", "@slotkeeper/postgres", "@slotkeeper/protocol/schemas"].map(value),
    accepted: ["slotkeeper", "slotkeeper/parts", "@slotkeeper/protocol", "../order.ts"].map(value),
  },
  "queue/src/book": {
    refused: ["../decide/decide.ts", "../engine/host.ts", "../store/memory-store.ts", "@slotkeeper/postgres"].map(
      value,
    ),
    accepted: [...["./book.ts", "../order/order-of.ts", "../options.ts"].map(value), type("../store/host-store.ts")],
  },
  "queue/src/order": {
    refused: [
      ...["../book/book.ts", "../../book/leases.ts", "../decide/decide.ts", "../engine/host.ts", "node:fs"].map(value),
      type("../store/host-store.ts"),
    ],
    accepted: [
      ...["./plain-order.ts", "./weighted/turns.ts", "../../book/use.ts", "../options.ts"].map(value),
      ...["../book/book.ts", "../../book/line.ts"].map(type),
    ],
  },
  "queue/src/decide": {
    refused: [
      ...["../order/order.ts", "../engine/host.ts", "../store/memory-store.ts", "node:fs"].map(value),
      type("../order/weighted/numbers.ts"),
    ],
    accepted: ["./ends.ts", "../book/book.ts", "../inputs.ts", "@slotkeeper/protocol"].map(value),
  },
  "queue/src/store": {
    refused: ["../order/order.ts", "../engine/host.ts", "../decide/decide.ts", "node:fs"].map(value),
    accepted: ["./stored-host.ts", "../book/book.ts"].map(value),
  },
  "queue/src/engine": {
    refused: ["../order/order.ts", "@slotkeeper/postgres", "node:fs"].map(value),
    accepted: [
      ...["./host.ts", "../decide/decide.ts", "../book/book.ts", "../store/host-store.ts", "slotkeeper"].map(value),
      type("../order/contract.ts"),
    ],
  },
  postgres: {
    refused: [
      "@slotkeeper/server",
      "@slotkeeper/protocol",
      "slotkeeper/effects",
      "undici",
      "../../queue/src/index.ts",
    ].map(value),
    accepted: ["pg", "pg-connection-string", "node:crypto", "node:fs/promises", "slotkeeper", "@slotkeeper/queue"].map(
      value,
    ),
  },
  client: {
    refused: [
      ...["node:http", "undici", "slotkeeper", "@slotkeeper/server", "@slotkeeper/protocol"].map(value),
      ...["@opentelemetry/api", "@slotkeeper/queue"].map(type),
    ],
    accepted: [type("@slotkeeper/protocol"), value("./retry.ts")],
  },
  "client/src/node": {
    refused: ["slotkeeper", "@slotkeeper/server", "@slotkeeper/protocol", "undici"].map(value),
    accepted: ["node:http", "node:fs/promises", "../errors.ts", "./holder.ts"].map(value),
  },
  "client/src/opentelemetry": {
    refused: ["node:fs", "@opentelemetry/sdk-metrics", "slotkeeper", "@slotkeeper/server"].map(value),
    accepted: ["@opentelemetry/api", "../options.ts"].map(value),
  },
  "client/src/middleware": {
    refused: [
      ...["node:fs", "express", "fastify", "hono", "slotkeeper", "@slotkeeper/protocol"].map(value),
      type("@slotkeeper/server"),
    ],
    accepted: [type("express"), type("fastify"), type("hono"), value("../errors.ts")],
  },
  server: {
    refused: [
      "pg",
      "@slotkeeper/client",
      "@slotkeeper/cli",
      "undici",
      "typebox/schema",
      "slotkeeper/effects",
      "../../postgres/src/index.ts",
    ].map(value),
    accepted: [
      "typebox",
      "node:http",
      "node:fs/promises",
      "slotkeeper",
      "@slotkeeper/protocol/schemas",
      "@slotkeeper/queue",
      "@slotkeeper/postgres",
      "../log.ts",
    ].map(value),
  },
  "server/src/log": {
    refused: ["../config/settings.ts", "../words/near-match.ts", "@slotkeeper/queue"].map(value),
    accepted: [...["./scrubber.ts", "node:stream"].map(value), type("@slotkeeper/protocol")],
  },
  "server/src/words": {
    refused: ["../config/settings.ts", "../log/logger.ts", "node:fs", "@slotkeeper/queue"].map(value),
    accepted: ["./near-match.ts", "typebox", "@slotkeeper/protocol/schemas"].map(value),
  },
  "server/src/platform": {
    refused: ["../config/settings.ts", "../log/logger.ts", "@slotkeeper/queue"].map(value),
    accepted: ["./digests.ts", "node:crypto", "slotkeeper"].map(value),
  },
  "server/src/config": {
    refused: ["../store/open-store.ts", "../queue/names.ts", "../http/exchange.ts", "../service.ts", "pg"].map(value),
    accepted: ["./layers.ts", "../log/logger.ts", "../words/validator.ts", "node:fs", "@slotkeeper/queue"].map(value),
  },
  "server/src/store": {
    refused: [
      "../queue/names.ts",
      "../../queue/names.ts",
      "../telemetry/telemetry.ts",
      "../../http/exchange.ts",
      "../service.ts",
      "@slotkeeper/protocol",
    ].map(value),
    accepted: [
      "./open-store.ts",
      "../open-store.ts",
      "../config/settings.ts",
      "../../words/system-words.ts",
      "../platform/clock.ts",
      "node:fs/promises",
      "@slotkeeper/postgres",
    ].map(value),
  },
  "server/src/queue": {
    refused: [
      ...[
        "../telemetry/telemetry.ts",
        "../http/exchange.ts",
        "../service.ts",
        "node:crypto",
        "@slotkeeper/postgres",
      ].map(value),
      type("../http/context.ts"),
    ],
    accepted: ["./names.ts", "../config/layers.ts", "../store/open-store.ts", "@slotkeeper/queue"].map(value),
  },
  "server/src/telemetry": {
    refused: [...["../http/exchange.ts", "../service-parts.ts"].map(value), type("../http/context.ts")],
    accepted: ["./metric.ts", "../queue/host-settings.ts", "../store/open-store.ts", "../version.ts"].map(value),
  },
  "server/src/http": {
    refused: ["../service.ts", "../service-parts.ts", "../doctor/diagnose.ts", "@slotkeeper/postgres", "pg"].map(value),
    accepted: [
      "./exchange.ts",
      "../exchange.ts",
      "./routes/state.ts",
      "../telemetry/scrape.ts",
      "node:http",
      "../../telemetry/live-frame.ts",
      "../../queue/names.ts",
      "@slotkeeper/protocol/schemas",
    ].map(value),
  },
  cloudflare: {
    refused: [
      "node:crypto",
      "cloudflare:workers",
      "pg",
      "typebox",
      "@slotkeeper/server",
      "@slotkeeper/server/internals",
      "@slotkeeper/client",
      "@slotkeeper/postgres",
      "@slotkeeper/protocol/schemas",
      "../../server/src/index.ts",
    ].map(value),
    accepted: [
      "slotkeeper",
      "@slotkeeper/queue",
      "@slotkeeper/protocol",
      "@slotkeeper/server/portable",
      "@slotkeeper/server/node-crypto",
      "./call-clock.ts",
    ].map(value),
  },
  cli: {
    refused: ["@slotkeeper/queue", "@slotkeeper/postgres", "@slotkeeper/protocol", "slotkeeper", "pg"].map(value),
    accepted: [
      "node:util",
      "@slotkeeper/server",
      "@slotkeeper/server/keeper",
      "@slotkeeper/client",
      "@slotkeeper/client/node/parts",
      "./exit.ts",
    ].map(value),
  },
  dashboard: {
    refused: ["node:fs", "slotkeeper", "@slotkeeper/server", "@slotkeeper/client", "@slotkeeper/protocol"].map(value),
    accepted: [type("@slotkeeper/protocol"), value("./chart.ts")],
  },
  "testkit/src/history": {
    refused: [
      ...["@slotkeeper/queue", "@slotkeeper/protocol", "@slotkeeper/postgres", "slotkeeper", "pg"].map(value),
      ...["../simulator/world.ts", "../../../queue/src/index.ts"].map(value),
      type("@slotkeeper/queue"),
    ],
    accepted: ["node:crypto", "./call.ts", "../rule.ts"].map(value),
  },
};

/** Packages whose time and randomness are injected. `hostTime` has calls that use those of the host. */
const timed = ["core", "queue"];
const hostTime = ["setTimeout(f, 1)", "setInterval(f, 1)", "performance.now()", "Date.now()", "Math.random()"].map(
  (call) => `declare const f: () => void;\nexport const x = ${call};\n`,
);

let folder: string;
/** For each file, the rules that it breaks. */
const broken = new Map<string, string[]>();

function plant(file: string, source: string): void {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, source);
}

const folderOf = (name: string) => `packages/${name.includes("/") ? name : `${name}/src`}`;
const fileOf = (name: string, kind: string, index: number) => `${folderOf(name)}/${kind}-${index}.ts`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "slotkeeper-boundaries-"));
  copyFileSync(join(root, ".oxlintrc.json"), join(folder, ".oxlintrc.json"));
  for (const [name, { refused, accepted }] of Object.entries(imports)) {
    refused.forEach((source, index) => plant(fileOf(name, "refused", index), source));
    accepted.forEach((source, index) => plant(fileOf(name, "accepted", index), source));
  }
  for (const name of timed) hostTime.forEach((source, index) => plant(fileOf(name, "time", index), source));
  const { stdout } = spawnSync(process.execPath, [join(root, "node_modules/.bin/oxlint"), "--format", "json"], {
    cwd: folder,
    encoding: "utf8",
  });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string; code: string }[] };
  for (const { filename, code } of diagnostics) broken.set(filename, [...(broken.get(filename) ?? []), code]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the linter", () => {
  for (const [name, { refused, accepted }] of Object.entries(imports)) {
    test.each(refused.map((source, index) => [source.trim(), index] as const))(`refuses in ${name}: %s`, (_, index) => {
      expect(broken.get(fileOf(name, "refused", index))).toContain("eslint(no-restricted-imports)");
    });

    test.each(accepted.map((source, index) => [source.trim(), index] as const))(
      `accepts in ${name}: %s`,
      (_, index) => {
        expect(broken.get(fileOf(name, "accepted", index)) ?? []).not.toContain("eslint(no-restricted-imports)");
      },
    );
  }

  for (const name of timed) {
    test.each(hostTime.map((source, index) => [source.split("\n")[1], index] as const))(
      `refuses the host's time and randomness in ${name}: %s`,
      (_, index) => {
        expect(broken.get(fileOf(name, "time", index))?.join()).toMatch(/no-restricted-(globals|properties)/);
      },
    );
  }

  test("has no import rule without a planted violation", () => {
    const { overrides } = JSON.parse(readFileSync(join(root, ".oxlintrc.json"), "utf8")) as {
      overrides: { files: string[]; rules: Record<string, unknown> }[];
    };
    const ruled = overrides.filter(({ rules }) => "no-restricted-imports" in rules).flatMap(({ files }) => files);
    expect(ruled.sort()).toEqual(
      Object.keys(imports)
        .map((name) => `${folderOf(name)}/**`)
        .sort(),
    );
  });
});
