import { readFileSync, writeFileSync } from "node:fs";
import { PROBLEMS } from "@slotkeeper/protocol";
import { ConfigSchema, configDocument, openApiDocument, ROUTES, type Route } from "@slotkeeper/protocol/schemas";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { loadConfig } from "@slotkeeper/server";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { configReference } from "./config-reference.ts";
import { configFile } from "./service-fixture.ts";

const fileOf = (path: string) => new URL(`../../../${path}`, import.meta.url);
const read = (path: string) => readFileSync(fileOf(path), "utf8");

/**
 * `WRITE_DOCUMENTS=1 npx vitest run packages/server/test/documents.test.ts`, then the formatter, writes the files
 * again. The layout of tables and lists is not compared.
 */
function expectCurrent(path: string, text: string): void {
  if (process.env["WRITE_DOCUMENTS"] !== undefined) writeFileSync(fileOf(path), text);
  expect(withoutLayout(read(path))).toEqual(withoutLayout(text));
}

function withoutLayout(text: string): string[] {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/-{3,}/g, "---")
    .split(/ ?(?:\||[[\]{},]) ?/);
}

describe("files made from the schemas are current:", () => {
  it("the $schema of config.json", () => {
    expectCurrent("packages/protocol/schema/config.schema.json", JSON.stringify(configDocument(), undefined, 2));
  });

  it("the reference of configuration", () => {
    expectCurrent("docs/reference/config.md", configReference());
  });
});

describe("the OpenAPI document", () => {
  it("contains no internal or operator route without the bearer", () => {
    const { paths } = openApiDocument({ version: "0" }) as {
      paths: Record<string, Record<string, { security: object[] }>>;
    };
    for (const route of Object.values<Route>(ROUTES)) {
      const { security } = paths[route.path]?.[route.method.toLowerCase()] ?? { security: [] };
      const isAnonymous = security.length === 0 || security.some((way) => Object.keys(way).length === 0);
      const isGuarded = route.audience !== "public" && route.audience !== "caller";
      expect([route.path, isAnonymous]).toEqual([route.path, !isGuarded]);
    }
  });
});

describe("the $schema", () => {
  const check = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true }).compile(configDocument());

  it("accepts what the service accepts, including null, and refuses what it refuses", () => {
    const good = [
      {},
      {
        $schema: "./config.schema.json",
        listen: ":8080",
        fairQueue: { maxWaitMs: null, hosts: { "*.x": { maxSlotPerHost: 2 } } },
      },
      { auth: null, logLevel: null, backend: { mode: null } },
      { fairQueue: { maxSlotPerHost: 0, maxWaitMs: -1, leaseSeconds: 40, hosts: { a: { leaseSeconds: 0 } } } },
      { notes: "x", "//": 1, _x: {}, logLevel: "", auth: { token: "", notes: [] }, fairQueue: { order: "", _x: 1 } },
    ];
    for (const config of good) {
      expect([config, check(config)]).toEqual([config, true]);
      loadConfig({ file: configFile(config) });
    }
    const bad = [
      { colour: 1 },
      { listen: "8080" },
      { fairQueue: { maxSlotPerHost: 1.5 } },
      { fairQueue: { maxHoldSeconds: 0 } },
      { logLevel: "loud" },
      { tokenKeys: [] },
    ];
    for (const config of bad) {
      expect([config, check(config)]).toEqual([config, false]);
      expect(() => loadConfig({ file: configFile(config) })).toThrow(/problem/);
    }
  });
});

describe("the defaults", () => {
  it("in the schema are those of the engine", () => {
    const { fairQueue } = loadConfig({}).settings;
    const [{ defaults: _a, ...given }, { defaults: _b, ...own }] = [resolveOptions(fairQueue), resolveOptions({})];
    expect(given).toEqual(own);
    const policies = [fairQueue, {}].map((config) => resolveHost(resolveOptions(config), "example.com").policy);
    expect(policies[0]).toEqual(policies[1]);
  });

  it("match their own schemas", () => {
    const ajv = new Ajv2020({ strict: false, useDefaults: false });
    for (const { schema, path } of leaves(ConfigSchema as Leaf, "")) {
      if (schema.default !== undefined) expect([path, ajv.validate(schema, schema.default)]).toEqual([path, true]);
    }
  });

  interface Leaf {
    properties?: Record<string, Leaf>;
    default?: unknown;
  }

  function leaves(schema: Leaf, path: string): { schema: Leaf; path: string }[] {
    const { properties } = schema;
    if (properties === undefined) return [{ schema, path }];
    return Object.entries(properties).flatMap(([key, item]) => leaves(item, `${path}.${key}`));
  }
});

describe("the OpenAPI document", () => {
  const document = openApiDocument({ version: "1.0.0" }) as {
    paths: Record<string, Record<string, { operationId: string; responses: object }>>;
    components: { schemas: Record<string, object> };
  };

  it("lists exactly the routes that are served", () => {
    const listed = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual(
      Object.values<Route>(ROUTES)
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    );
  });

  it("describes a slot as the state shows it: `<host>.<fence>`", () => {
    const operation: object = document.paths["/api/v0/slots/{id}"]?.["delete"] ?? {};
    const { parameters } = operation as { parameters: { schema: object }[] };
    const isValid = new Ajv2020().compile(parameters[0]?.schema ?? false);
    expect(["5f0e2a.17", "a.b.1700000000000017", "17", "5f0e2a.", "5f0e2a.x"].map((id) => isValid(id))).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  it("refers only to schemas that it contains, and each of them is a schema", () => {
    const names = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name ?? "",
    );
    expect(new Set(names)).toEqual(new Set(Object.keys(document.components.schemas)));
    const ajv = new Ajv2020({ strict: false });
    for (const schema of Object.values(document.components.schemas)) expect(ajv.validateSchema(schema)).toBe(true);
  });
});

describe("docs/reference/http.md", () => {
  const text = read("docs/reference/http.md");

  it("has every route, and no other", () => {
    const documented = [...text.matchAll(/^#+ `(GET|POST|DELETE) (\S+)`/gm)].map(
      ([, method, path]) => `${method} ${path}`,
    );
    expect(documented.sort()).toEqual(
      Object.values<Route>(ROUTES)
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
    );
  });

  it("links to the page that has every problem with its status, and no other", () => {
    expect(text).toContain("errors.md#problems-of-the-service");
    const documented = [
      ...read("docs/reference/errors.md").matchAll(/^\| `([A-Z_]+)` +\| +(\d+) +\| (.+?) +\|$/gm),
    ].map(([, code, status, title]) => [code, Number(status), title]);
    expect(documented).toEqual(Object.entries(PROBLEMS).map(([code, { status, title }]) => [code, status, title]));
  });
});
