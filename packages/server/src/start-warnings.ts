import type { LoadedConfig } from "./config/load-config.ts";
import { connectionsAllowed } from "./http/file-limit.ts";
import { isLoopback } from "./http/loopback.ts";

/** What a person should hear loudly before trusting this configuration. */
export function startWarnings({ settings, warnings: known }: LoadedConfig, address: string): string[] {
  const warnings = [...known];
  const isPublic = !isLoopback(address);
  if (settings.auth === undefined && isPublic) {
    warnings.push(
      `OPEN TO EVERYBODY: listening on ${address} without a shared key. Anyone who can reach this port can take and release slots. Set \`auth.enabled\` and \`auth.token\`, or \`listen\` on 127.0.0.1.`,
    );
  }
  if (settings.internalApiToken === undefined && isPublic) {
    warnings.push(
      `Listening on ${address} without \`internalApiToken\`: nobody can use the operators' routes and the dashboard's data, and anyone can read /metrics. Set \`internalApiToken\`.`,
    );
  }
  const allowed = connectionsAllowed();
  if (settings.limits.connections > allowed && allowed < FEW_CONNECTIONS) {
    warnings.push(
      `The system lets this process open few files: ${allowed} connections are served, not \`limits.connections\` (${settings.limits.connections}). Raise it (ulimit -n).`,
    );
  }
  if (settings.controller?.base.startsWith("http://") === true && !isOnLoopback(settings.controller.base)) {
    warnings.push("`controller.url` is not https: its token and the configuration cross the network in the clear");
  }
  return warnings;
}

/** Below this a service is short of connections in ordinary use: each held poll is one. */
const FEW_CONNECTIONS = 1_000;

function isOnLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || isLoopback(hostname.replaceAll(/^\[|\]$/g, ""));
}
