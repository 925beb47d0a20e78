import { checkSchemaName, parseBaseUrl, parseDsn } from "@slotkeeper/postgres";
import type { ServiceConfig } from "@slotkeeper/protocol";
import { type CrossProblem, hostProblems, queueProblems } from "./queue-rules.ts";
import { backendMode, parseListen, sharedKeys } from "./settings.ts";

/** Combinations that each key alone allows, but not together. */
export function crossProblems(config: ServiceConfig): CrossProblem[] {
  return [
    ...listenProblems(config),
    ...authProblems(config),
    ...backendProblems(config),
    ...shutdownProblems(config),
    ...queueProblems(config),
    ...hostProblems(config),
  ];
}

/** The grace is part of the deadline. If nothing were left after it, running requests would be cut off. */
function shutdownProblems({ shutdown }: ServiceConfig): CrossProblem[] {
  const { graceMs = 0, deadlineMs = 0 } = shutdown ?? {};
  if (graceMs <= deadlineMs) return [];
  const message = `Expected \`shutdown.deadlineMs\` to be at least \`shutdown.graceMs\` (${graceMs}), got ${deadlineMs}`;
  return [{ about: ["shutdown.graceMs", "shutdown.deadlineMs"], message }];
}

function listenProblems({ listen }: ServiceConfig): CrossProblem[] {
  const port = listen === undefined ? 0 : parseListen(listen).port;
  const message = `Expected the port of \`listen\` to be at most 65535, got ${port}`;
  return port <= 65_535 ? [] : [{ about: ["listen"], message }];
}

function authProblems(config: ServiceConfig): CrossProblem[] {
  const isOpen = config.auth?.enabled === true && sharedKeys(config).length === 0;
  const message = "`auth.token` or `auth.tokens` is required because `auth.enabled` is true";
  return isOpen ? [{ about: ["auth.enabled", "auth.token", "auth.tokens"], message }] : [];
}

function backendProblems(config: ServiceConfig): CrossProblem[] {
  const { backend } = config;
  const mode = backendMode(config);
  const problems: CrossProblem[] = [];
  const add = (key: string, message: string) =>
    problems.push({ about: ["backend.mode", `backend.${key}`], message: `\`backend.${key}\` ${message}` });
  if (mode === "postgres" && backend?.postgres?.dsn === undefined) {
    add("postgres.dsn", 'is required because `backend.mode` is "postgres"');
  }
  if (mode === "postgrest" && backend?.postgrest?.baseUrl === undefined) {
    add("postgrest.baseUrl", 'is required because `backend.mode` is "postgrest"');
  }
  for (const [key, value, check] of [
    ["postgrest.baseUrl", backend?.postgrest?.baseUrl, parseBaseUrl],
    ["postgres.dsn", backend?.postgres?.dsn, parseDsn],
    ["postgres.listenDsn", backend?.postgres?.listenDsn, parseDsn],
    ["postgres.schema", backend?.postgres?.schema, checkSchemaName],
  ] as const) {
    const problem = refusal(value, check);
    if (problem !== undefined) add(key, `cannot be used. ${problem}`);
  }
  if (mode !== "memory" && backend?.memory?.journal !== undefined) {
    add("memory.journal", `(\`--data\`) needs the memory store, but \`backend.mode\` is "${mode}"`);
  }
  return problems;
}

/** Problems that the pattern does not show: the message with which the store refuses the value. */
function refusal(value: string | undefined, check: (value: string) => unknown): string | undefined {
  try {
    if (value !== undefined) check(value);
    return undefined;
  } catch (error) {
    return (error as TypeError).message;
  }
}
