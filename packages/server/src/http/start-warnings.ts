import type { Advice } from "../config/advice.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Settings } from "../config/settings.ts";
import { connectionsAllowed, isLoopback } from "./connections.ts";

/** Warnings about this configuration on this machine. `address` is where the service listens. */
export function startWarnings({ settings, warnings }: LoadedConfig, address: string): Advice[] {
  return [...warnings, ...openAdvice(settings, address), ...fileAdvice(settings), ...controllerAdvice(settings)];
}

function openAdvice({ auth, internalApiToken }: Settings, address: string): Advice[] {
  if (isLoopback(address)) return [];
  const advice: Advice[] = [];
  if (auth === undefined) {
    advice.push({
      code: "OPEN_TO_EVERYONE",
      found: `OPEN TO EVERYONE: listening on ${address} without a shared key`,
      why: "anyone who can reach this port can take and release slots",
      fix: "Set `auth.enabled` and `auth.token`, or `listen` on 127.0.0.1.",
    });
  }
  if (internalApiToken === undefined) {
    advice.push({
      code: "NO_INTERNAL_TOKEN",
      found: `listening on ${address} without \`internalApiToken\``,
      why: "the operators' routes and the dashboard's data cannot be used, nor /metrics without `metrics.token`",
      fix: "Set `internalApiToken`.",
    });
  }
  return advice;
}

/** Below this number a service has too few connections for ordinary use: each held poll is one. */
const FEW_CONNECTIONS = 1_000;

function fileAdvice({ limits }: Settings): Advice[] {
  const allowed = connectionsAllowed();
  if (limits.connections <= allowed || allowed >= FEW_CONNECTIONS) return [];
  return [
    {
      code: "FEW_FILES",
      found: "the system lets this process open few files",
      why: `${allowed} connections are served, not \`limits.connections\` (${limits.connections})`,
      fix: "Raise the limit of open files (ulimit -n).",
    },
  ];
}

function controllerAdvice({ controller }: Settings): Advice[] {
  if (controller?.base.startsWith("http://") !== true || isOnLoopback(controller.base)) return [];
  return [
    {
      code: "CONTROLLER_NOT_ENCRYPTED",
      found: "`controller.url` is not https",
      why: "its token and the configuration cross the network unencrypted",
      fix: "Use https, or an address of this machine.",
    },
  ];
}

function isOnLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || isLoopback(hostname.replaceAll(/^\[|\]$/g, ""));
}
