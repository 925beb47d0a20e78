import { lookup } from "node:dns/promises";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Settings } from "../config/settings.ts";
import { startWarnings } from "../http/start-warnings.ts";
import { isLoopback } from "../platform/system.ts";
import { type Check, type Finding, findingOf, ok, warning } from "./finding.ts";

/** Checks that need only the configuration: address, keys, limits. */
export async function configFindings(config: LoadedConfig): Promise<readonly Finding[]> {
  const address = await addressOf(config.settings);
  const findings = [...startWarnings(config, address).map(findingOf), ...controllerFindings(config)];
  const healthy: { readonly [check in Check]?: string } = {
    configuration: configText(config),
    address: addressText(config.settings, address),
    keys: keyText(config.settings),
    limits: limitText(config.settings),
  };
  const unsaid = Object.entries(healthy).filter(([check]) => !findings.some((finding) => finding.check === check));
  return [...findings, ...unsaid.map(([check, found]) => ok(check as Check, found))];
}

/** The address on which the service would listen. */
async function addressOf({ listen }: Settings): Promise<string> {
  if (listen.host === undefined) return "::";
  // An unknown name stays a name, which counts as public.
  return lookup(listen.host).then(
    ({ address }) => address,
    () => listen.host as string,
  );
}

function controllerFindings({ settings, version }: LoadedConfig): Finding[] {
  if (settings.controller === undefined || !/^(?:file:|default$)/.test(version)) return [];
  return [
    warning("configuration", {
      code: "CONTROLLER_UNREACHABLE",
      found: `The control plane at ${new URL(settings.controller.base).origin} gave no configuration.`,
      why: "A service that starts now runs with the local file, which may hold other limits.",
      fix: "Check `controller.url` and `controller.apiToken`, and that the control plane runs.",
    }),
  ];
}

function configText({ origins }: LoadedConfig): string {
  const count = [...origins.values()].filter((origin) => origin !== "default").length;
  if (count === 0) return "No key is set: all values are defaults.";
  return count === 1 ? "1 key set, known and valid." : `${count} keys set, all known and valid.`;
}

function addressText({ auth, listen }: Settings, address: string): string {
  const place = `${listen.host ?? "every address of this machine"}, port ${listen.port}`;
  if (isLoopback(address)) return `${place}: reached from this machine only.`;
  return `${place}: callers need ${auth === undefined ? "no key" : `a key in ${auth.header}`}.`;
}

function keyText({ auth, internalApiToken }: Settings): string {
  const shared =
    auth === undefined ? "No shared key" : `${auth.keys.length} shared key${auth.keys.length > 1 ? "s" : ""}`;
  return `${shared}, ${internalApiToken === undefined ? "no" : "an"} internal token.`;
}

function limitText({ fairQueue }: Settings): string {
  const { maxSlotPerHost, maxSlotPerIp = 0, zombieTimeoutSeconds, hosts = {} } = fairQueue;
  const perBucket = maxSlotPerIp > 0 ? `${maxSlotPerIp} per bucket` : "no limit per bucket";
  const overrides = Object.keys(hosts).length;
  const own = overrides === 0 ? "" : `; ${overrides} host${overrides > 1 ? "s" : ""} with limits of their own`;
  return `${maxSlotPerHost} slots per host, ${perBucket}, a lease of ${zombieTimeoutSeconds} s${own}.`;
}
