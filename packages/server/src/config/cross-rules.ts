import type { HostLimitsConfig, ServiceConfig } from "@slotkeeper/protocol";
import { fieldName } from "../validation/field-problem.ts";
import { backendMode, parseListen, sharedKeys } from "./settings.ts";

/** What each key alone allows and the keys together do not. Each problem is a sentence with the paths. */
export function crossProblems(config: ServiceConfig): string[] {
  return [
    ...listenProblems(config),
    ...authProblems(config),
    ...backendProblems(config),
    ...controllerProblems(config),
    ...queueProblems(config),
  ];
}

function controllerProblems({ controller }: ServiceConfig): string[] {
  const isMute = controller?.url !== undefined && controller.apiToken === undefined;
  return isMute ? ["`controller.apiToken` is required because `controller.url` is set"] : [];
}

function listenProblems({ listen }: ServiceConfig): string[] {
  const port = listen === undefined ? 0 : parseListen(listen).port;
  return port <= 65_535 ? [] : [`Expected the port of \`listen\` to be at most 65535, got ${port}`];
}

function authProblems(config: ServiceConfig): string[] {
  const isOpen = config.auth?.enabled === true && sharedKeys(config).length === 0;
  return isOpen ? ["`auth.token` or `auth.tokens` is required because `auth.enabled` is true"] : [];
}

function backendProblems(config: ServiceConfig): string[] {
  const { backend } = config;
  const mode = backendMode(config);
  const problems: string[] = [];
  if (mode === "postgres" && backend?.postgres?.dsn === undefined) {
    problems.push('`backend.postgres.dsn` is required because `backend.mode` is "postgres"');
  }
  if (mode === "postgrest" && backend?.postgrest?.baseUrl === undefined) {
    problems.push('`backend.postgrest.baseUrl` is required because `backend.mode` is "postgrest"');
  }
  if (mode !== "memory" && backend?.memory?.journal !== undefined) {
    problems.push(
      `\`backend.memory.journal\` (\`--data\`) goes with the memory store, but \`backend.mode\` is "${mode}"`,
    );
  }
  return problems;
}

function queueProblems({ fairQueue = {} }: ServiceConfig): string[] {
  const { coldAvgWaitMs: cold, hotAvgWaitMs: hot } = fairQueue.weightedScheduler ?? {};
  const problems: string[] = [];
  if (cold !== undefined && hot !== undefined && cold >= hot) {
    const path = "fairQueue.weightedScheduler";
    problems.push(`Expected \`${path}.hotAvgWaitMs\` to be above \`coldAvgWaitMs\` (${cold}), got ${hot}`);
  }
  problems.push(...holdProblems("fairQueue", fairQueue));
  for (const [host, limits] of Object.entries(fairQueue.hosts ?? {})) {
    if (limits.maxHoldSeconds === undefined && limits.zombieTimeoutSeconds === undefined) continue;
    problems.push(...holdProblems(fieldName(["fairQueue", "hosts", host]), { ...fairQueue, ...limits }));
  }
  return problems;
}

/** A lease longer than the longest hold could never run its time. */
function holdProblems(path: string, { maxHoldSeconds, zombieTimeoutSeconds }: HostLimitsConfig): string[] {
  if (maxHoldSeconds === undefined || zombieTimeoutSeconds === undefined) return [];
  if (maxHoldSeconds >= zombieTimeoutSeconds) return [];
  return [
    `Expected \`${path}.maxHoldSeconds\` to be at least \`zombieTimeoutSeconds\` (${zombieTimeoutSeconds}), got ${maxHoldSeconds}`,
  ];
}

/** The names of SQL functions may stand at the top or under `fairQueue`; not differently in both. */
export function doubleProblems({ rpc = {}, fairQueue }: ServiceConfig): string[] {
  const inner: { readonly [key: string]: string | undefined } = fairQueue?.rpc ?? {};
  return Object.entries(rpc)
    .filter(([key, name]) => inner[key] !== undefined && inner[key] !== name)
    .map(
      ([key, name]) =>
        `\`rpc.${key}\` is ${JSON.stringify(name)}, but \`fairQueue.rpc.${key}\` is ${JSON.stringify(inner[key])}`,
    );
}
