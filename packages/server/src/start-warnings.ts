import type { LoadedConfig } from "./config/load-config.ts";

/** What a person should hear loudly before trusting this configuration. */
export function startWarnings({ settings }: LoadedConfig, address: string): string[] {
  const warnings: string[] = [];
  const isLoopback = address === "::1" || address.startsWith("127.");
  if (settings.auth === undefined && !isLoopback) {
    warnings.push(
      `OPEN TO EVERYBODY: listening on ${address} without a shared key. Anyone who can reach this port can take and release slots. Set \`auth.enabled\` and \`auth.token\`, or \`listen\` on 127.0.0.1.`,
    );
  }
  const short = (settings.tokenKeys ?? []).filter((key) => key.length < SHORT_KEY).length;
  if (short > 0)
    warnings.push(`${short} of \`tokenKeys\` shorter than ${SHORT_KEY} characters: such a key can be guessed`);
  if (settings.controller?.base.startsWith("http://") === true && !isOnLoopback(settings.controller.base)) {
    warnings.push("`controller.url` is not https: its token and the configuration cross the network in the clear");
  }
  return warnings;
}

const SHORT_KEY = 16;

function isOnLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}
