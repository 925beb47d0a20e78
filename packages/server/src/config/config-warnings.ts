import { CLEANUP_SETTINGS, SEMAPHORE_PREFIX, type ServiceConfig } from "@slotkeeper/protocol";
import { fieldName } from "../words/validator.ts";
import { type Advice, adviceIf } from "./advice.ts";
import { keyAdvice } from "./key-advice.ts";
import { limitAdvice } from "./limit-advice.ts";
import { backendMode } from "./settings.ts";

/** Settings that are valid but may not have the effect that their author wants. */
export function configWarnings(config: ServiceConfig): Advice[] {
  return [...unusedKeys(config), ...controllerAdvice(config), ...keyAdvice(config), ...limitAdvice(config)];
}

function controllerAdvice({ controller }: ServiceConfig): Advice[] {
  return adviceIf(
    controller?.url !== undefined && controller.apiToken === undefined,
    "CONTROLLER_WITHOUT_TOKEN",
    "`controller.url` is set, but `controller.apiToken` is not",
    "the service runs without a controller: it uses the local configuration and sends no metrics",
    "Set `controller.apiToken`, or remove `controller.url`.",
  );
}

function unusedKeys(config: ServiceConfig): Advice[] {
  const { rpc, fairQueue, backend } = config;
  const mode = backendMode(config);
  const { queueDepthZombieTtlSeconds: ttl } = CLEANUP_SETTINGS;
  const ownFunctions = "the service calls SQL functions of its own, not those of the original";
  return [
    ...unused(Object.keys(rpc ?? {}).length > 0, "rpc", ownFunctions),
    ...unused(Object.keys(fairQueue?.rpc ?? {}).length > 0, "fairQueue.rpc", ownFunctions),
    ...unused(
      backend?.postgrest?.authHeader !== undefined && mode !== "postgrest",
      "backend.postgrest.authHeader",
      `\`backend.mode\` is "${mode}", which does not use PostgREST`,
    ),
    ...unused(
      (fairQueue?.cleanup?.queueDepthZombieTtlSeconds ?? ttl.default) !== ttl.default,
      "fairQueue.cleanup.queueDepthZombieTtlSeconds",
      "waiters of a dead instance are deleted within 5 s",
    ),
    ...Object.entries(fairQueue?.hosts ?? {}).flatMap(([host, own]) =>
      (["budgets", "keys", "classes"] as const).flatMap((name) =>
        unused(
          own[name] !== undefined && host.startsWith(SEMAPHORE_PREFIX),
          `${fieldName(["fairQueue", "hosts", host])}.${name}`,
          `a named semaphore has no ${name}`,
        ),
      ),
    ),
  ];
}

function unused(isSo: boolean, path: string, why: string): Advice[] {
  return adviceIf(isSo, "UNUSED_KEY", `\`${path}\` has no effect`, why, "Remove it.");
}
