import { type Advice, adviceIf } from "../config/advice.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Settings } from "../config/settings.ts";
import { connectionsAllowed, isLoopback } from "../platform/system.ts";

/** Warnings about this configuration on this machine. `address` is where the service listens. */
export function startWarnings({ settings, warnings }: LoadedConfig, address: string): Advice[] {
  return [...warnings, ...openAdvice(settings, address), ...fileAdvice(settings), ...controllerAdvice(settings)];
}

function openAdvice({ auth, internalApiToken }: Settings, address: string): Advice[] {
  if (isLoopback(address)) return [];
  return [
    ...adviceIf(
      auth === undefined,
      "OPEN_TO_EVERYONE",
      `OPEN TO EVERYONE: listening on ${address} without a shared key`,
      "anyone who can reach this port can take and release slots",
      "Set `auth.enabled` and `auth.token`, or `listen` on 127.0.0.1.",
    ),
    ...adviceIf(
      internalApiToken === undefined,
      "NO_INTERNAL_TOKEN",
      `listening on ${address} without \`internalApiToken\``,
      "the operators' routes and the dashboard's data cannot be used, nor /metrics without `metrics.token`",
      "Set `internalApiToken`.",
    ),
  ];
}

/** Below this number a service has too few connections for ordinary use: each held poll is one. */
const FEW_CONNECTIONS = 1_000;

function fileAdvice({ limits }: Settings): Advice[] {
  const allowed = connectionsAllowed();
  return adviceIf(
    allowed < Math.min(limits.connections, FEW_CONNECTIONS),
    "FEW_FILES",
    "the system lets this process open few files",
    `${allowed} connections are served, not \`limits.connections\` (${limits.connections})`,
    "Raise the limit of open files (ulimit -n).",
  );
}

function controllerAdvice({ controller }: Settings): Advice[] {
  return adviceIf(
    controller?.base.startsWith("http://") === true && !isOnLoopback(controller.base),
    "CONTROLLER_NOT_ENCRYPTED",
    "`controller.url` is not https",
    "its token and the configuration cross the network unencrypted",
    "Use https, or an address of this machine.",
  );
}

function isOnLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || isLoopback(hostname.replaceAll(/^\[|\]$/g, ""));
}
