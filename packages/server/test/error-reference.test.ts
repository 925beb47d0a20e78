import { readFileSync } from "node:fs";
import * as postgres from "@slotkeeper/postgres";
import * as server from "@slotkeeper/server";
import * as internals from "@slotkeeper/server/internals";
import { expect, test } from "vitest";

const failure = (code: string) => Object.assign(new Error("of the driver"), { code });
const schemaCodes = internals.FINDING_CODES.filter((code) => code.startsWith("SCHEMA_")) as postgres.SchemaProblem[];

/** A sample of each class and code that the packages of the service throw. */
const SAMPLES: readonly Error[] = [
  new server.ConfigError(["a problem"]),
  new server.ControllerError("refused", "no"),
  new server.JournalCorruptError("j", 1, "torn"),
  new server.JournalFormatError("j", 3, 2),
  new server.JournalLockedError("j", "process 1"),
  new server.JournalPathError("j", "a folder"),
  new internals.StoreUnwritableError(),
  new postgres.DatabaseError("read", failure("57P01")),
  new postgres.DatabaseError("read", failure("28P01")),
  new postgres.MigrateError(undefined, "no"),
  ...schemaCodes.map((code) => new postgres.SchemaError(code, "public", "no")),
];

test("the reference has every error class that the packages export, with every code, and no other", () => {
  const page = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");
  const section = page.split("\n## ").find((text) => text.startsWith("Errors of the service's packages")) ?? "";
  const documented = [...section.matchAll(/^\| (?:`([A-Z_]+)`|–) +\| `(\w+)` +\| \S/gm)];
  const codeOf = (error: Error) => (error as { code?: string }).code ?? "–";
  expect(documented.map(([, code = "–", name]) => `${code} ${name}`)).toEqual(
    SAMPLES.map((error) => `${codeOf(error)} ${error.name}`),
  );
  const exported = Object.keys({ ...server, ...internals, ...postgres }).filter((name) => name.endsWith("Error"));
  expect(new Set(exported)).toEqual(new Set(SAMPLES.map(({ name }) => name)));
});
