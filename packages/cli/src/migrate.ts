import {
  ConfigError,
  loadConfig,
  MigrateError,
  type MigrationState,
  type MigrationTarget,
  migrate,
  migrationSchema,
  migrationScript,
  migrationStates,
  migrationTarget,
  SchemaError,
  schemaProblem,
} from "@slotkeeper/server";
import { MIGRATE } from "./commands/serving.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { running, wrongUsage } from "./read-flags.ts";

export const migrateCommand = running(MIGRATE, async (flags) => {
  const { print = false, status = false, json = false } = flags;
  if (print && status) return wrongUsage("--print and --status cannot be combined.", MIGRATE);
  try {
    const config = loadConfig({ file: flags.config, environment: process.env });
    if (print) process.stdout.write(migrationScript(migrationSchema(config)));
    else if (status) return await showStatus(migrationTarget(config), json);
    else await run(migrationTarget(config), json);
    return EXIT.ok;
  } catch (error) {
    return failed(error);
  }
});

async function run(target: MigrationTarget, isJson: boolean): Promise<void> {
  const onApplied = ({ file }: { file: string }) => void (isJson || process.stdout.write(`applied  ${file}\n`));
  const applied = await migrate({ ...target, onApplied });
  const files = applied.map(({ file }) => file);
  const summary = files.length === 0 ? "Nothing to do: the" : "The";
  process.stdout.write(
    isJson
      ? `${JSON.stringify({ schema: target.schema, applied: files })}\n`
      : `${summary} schema "${target.schema}" is up to date.\n`,
  );
}

async function showStatus(target: MigrationTarget, isJson: boolean): Promise<ExitCode> {
  const states = await migrationStates(target);
  process.stdout.write(isJson ? `${JSON.stringify(states)}\n` : `${states.map(lineOf).join("\n")}\n`);
  const problem = schemaProblem(target.schema, states);
  if (problem === undefined) return EXIT.ok;
  process.stderr.write(`${problem.message}\n`);
  const isBehind = problem.code === "SCHEMA_MISSING" || problem.code === "SCHEMA_OLD";
  return isBehind ? EXIT.migrationsMissing : EXIT.schemaForeign;
}

function lineOf({ number, name, state, appliedAt }: MigrationState): string {
  const line = `${String(number).padStart(4, "0")}  ${state.padEnd(7)}  ${name.padEnd(20)}`;
  return `${line}  ${appliedAt?.toISOString() ?? ""}`.trimEnd();
}

function failed(error: unknown): ExitCode {
  process.stderr.write(`${(error as Error).message}\n`);
  if (error instanceof ConfigError) return EXIT.config;
  return error instanceof MigrateError || error instanceof SchemaError ? EXIT.database : EXIT.failed;
}
