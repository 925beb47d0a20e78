import { parseBaseUrl, parseDsn } from "@slotkeeper/postgres";
import type { HostLimitsConfig, ServiceConfig } from "@slotkeeper/protocol";
import { fieldName } from "../validation/field-problem.ts";
import { backendMode, parseListen, sharedKeys } from "./settings.ts";

/** An invalid combination of keys, as a sentence, and the keys that it is about. */
export interface CrossProblem {
  readonly about: readonly string[];
  readonly message: string;
}

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
  for (const [key, address, parse] of [
    ["postgrest.baseUrl", backend?.postgrest?.baseUrl, parseBaseUrl],
    ["postgres.dsn", backend?.postgres?.dsn, parseDsn],
    ["postgres.listenDsn", backend?.postgres?.listenDsn, parseDsn],
  ] as const) {
    const problem = refusal(address, parse);
    if (problem !== undefined) add(key, `cannot be used. ${problem}`);
  }
  if (mode !== "memory" && backend?.memory?.journal !== undefined) {
    add("memory.journal", `(\`--data\`) needs the memory store, but \`backend.mode\` is "${mode}"`);
  }
  return problems;
}

/** Problems that the pattern does not show: the message of the parser that refuses the value. */
function refusal(address: string | undefined, parse: (address: string) => unknown): string | undefined {
  try {
    if (address !== undefined) parse(address);
    return undefined;
  } catch (error) {
    return (error as TypeError).message;
  }
}

function queueProblems({ fairQueue = {} }: ServiceConfig): CrossProblem[] {
  const problems = holdProblems("fairQueue", fairQueue);
  for (const [host, limits] of Object.entries(fairQueue.hosts ?? {})) {
    if (limits.maxHoldSeconds === undefined && limits.zombieTimeoutSeconds === undefined) continue;
    problems.push(...holdProblems(fieldName(["fairQueue", "hosts", host]), { ...fairQueue, ...limits }));
  }
  return problems;
}

/** A lease that is longer than the longest hold would never end by itself. */
function holdProblems(path: string, { maxHoldSeconds, zombieTimeoutSeconds }: HostLimitsConfig): CrossProblem[] {
  if (maxHoldSeconds === undefined || zombieTimeoutSeconds === undefined) return [];
  if (maxHoldSeconds >= zombieTimeoutSeconds) return [];
  const message = `Expected \`${path}.maxHoldSeconds\` to be at least \`zombieTimeoutSeconds\` (${zombieTimeoutSeconds}), got ${maxHoldSeconds}`;
  return [{ about: [`${path}.maxHoldSeconds`, `${path}.zombieTimeoutSeconds`], message }];
}

/** An override that no host name can match, or two overrides for the same name. */
function hostProblems({ fairQueue }: ServiceConfig): CrossProblem[] {
  const problems: CrossProblem[] = [];
  const spelled = new Map<string, string>();
  for (const pattern of Object.keys(fairQueue?.hosts ?? {})) {
    const field = fieldName(["fairQueue", "hosts", pattern]);
    const twin = spelled.get(pattern.toLowerCase());
    spelled.set(pattern.toLowerCase(), pattern);
    const rest = pattern === "*" ? "any" : pattern.replace(/^\*\./, "");
    const add = (message: string) => problems.push({ about: [field], message });
    if (rest === "" || rest.includes("*")) {
      const expected = 'a host name, `*.` and a host name, or "*" alone';
      add(`Expected the host of \`${field}\` to be ${expected}, got ${JSON.stringify(pattern)}: it would never match`);
    } else if (rest.endsWith(".")) {
      add(`Expected the host of \`${field}\` to end without a dot: it would never match`);
    } else if (twin !== undefined) {
      add(
        `\`${field}\` and \`${fieldName(["fairQueue", "hosts", twin])}\` name the same host: upper and lower case do not differ`,
      );
    }
  }
  return problems;
}
