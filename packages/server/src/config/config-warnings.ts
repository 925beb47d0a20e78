import { CLEANUP_SETTINGS, type ServiceConfig } from "@slotkeeper/protocol";
import type { Advice } from "./advice.ts";
import { keyAdvice } from "./key-advice.ts";
import { limitAdvice } from "./limit-advice.ts";
import { backendMode } from "./settings.ts";

/** Settings that are valid but may not have the effect that their author wants. */
export function configWarnings(config: ServiceConfig): Advice[] {
  return [...unusedKeys(config), ...controllerAdvice(config), ...keyAdvice(config), ...limitAdvice(config)];
}

function controllerAdvice({ controller }: ServiceConfig): Advice[] {
  if (controller?.url === undefined || controller.apiToken !== undefined) return [];
  return [
    {
      code: "CONTROLLER_WITHOUT_TOKEN",
      found: "`controller.url` is set, but `controller.apiToken` is not",
      why: "the service runs without a controller: it uses the local configuration and sends no metrics",
      fix: "Set `controller.apiToken`, or remove `controller.url`.",
    },
  ];
}

function unusedKeys(config: ServiceConfig): Advice[] {
  const { rpc, fairQueue, backend } = config;
  const mode = backendMode(config);
  const { queueDepthZombieTtlSeconds: ttl } = fairQueue?.cleanup ?? {};
  const advice: Advice[] = [];
  const add = (isSo: boolean, path: string, why: string) => {
    if (isSo) advice.push({ code: "UNUSED_KEY", found: `\`${path}\` has no effect`, why, fix: "Remove it." });
  };
  const ownFunctions = "the service calls SQL functions of its own, not those of the original";
  add(Object.keys(rpc ?? {}).length > 0, "rpc", ownFunctions);
  add(Object.keys(fairQueue?.rpc ?? {}).length > 0, "fairQueue.rpc", ownFunctions);
  add(
    backend?.postgrest?.authHeader !== undefined && mode !== "postgrest",
    "backend.postgrest.authHeader",
    `\`backend.mode\` is "${mode}", which does not use PostgREST`,
  );
  add(
    ttl !== undefined && ttl !== CLEANUP_SETTINGS.queueDepthZombieTtlSeconds.default,
    "fairQueue.cleanup.queueDepthZombieTtlSeconds",
    "waiters of a dead instance are deleted within 5 s",
  );
  return advice;
}
