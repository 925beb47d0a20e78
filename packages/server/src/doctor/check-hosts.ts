import { BUCKET_KEY, type ServiceState, sumOfFloors } from "@slotkeeper/protocol";
import { ROUTE_PATHS } from "@slotkeeper/protocol/schemas";
import { type QueueOptions, resolveHost, resolveOptions } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import type { ListenAddress } from "../config/settings.ts";
import { type Finding, warning, warningIf } from "./finding.ts";

type HostState = ServiceState["hosts"][number];
type Get = (listen: ListenAddress, path: string, headers: object) => Promise<Response>;

/** A state with this many values may leave out a key. */
const MOST_SHOWN = 50;

/** What the hosts of a running service show. Nothing, if its state may not be read. */
export async function hostFindings({ settings }: LoadedConfig, get: Get): Promise<readonly Finding[]> {
  const options = resolveOptions(settings.fairQueue);
  const state = await stateOf(settings.listen, settings.internalApiToken, get);
  return (state?.hosts ?? []).flatMap((host) => [...unsentKeys(host, options), ...floorsWithoutSlots(host)]);
}

/** Keys of a host with slots in use or waiters of which no request sends a value. */
function unsentKeys(host: HostState, options: QueueOptions): Finding[] {
  return unsentAt(host, options).map((key) =>
    warning("service", {
      code: "KEY_NOT_SENT",
      found: `No request that now holds a slot or waits at ${host.hostname} sends the key ${key}.`,
      why: "The limits of a key do not apply to a request that does not send it.",
      fix: `Send \`keys: { "${key}": … }\` with each first call, or set \`required\` of the key, so that such requests are refused.`,
    }),
  );
}

/** A reload can bring floors that the live limit has no room for. The configuration alone does not show that. */
function floorsWithoutSlots({ host, hostname = host, limits, classes = [] }: HostState): Finding[] {
  const floors = sumOfFloors(Object.fromEntries(classes.map((one) => [one.name, one])));
  const { value, origin } = limits.maxSlotPerHost;
  // A value of 0 is no limit.
  const isIgnored = origin === "live" && floors > 0 && value > 0 && floors >= value;
  return warningIf(isIgnored, "service", {
    code: "FLOORS_IGNORED",
    found: `The floors of the classes of ${hostname} sum up to ${floors}, and its live limit is ${value} slots.`,
    why: "Floors must leave at least one slot, so none of them is in force.",
    fix: `Set a live limit above ${floors}, or configure smaller floors.`,
  });
}

function unsentAt({ hostname, inFlight, waiting, keys }: HostState, options: QueueOptions): string[] {
  if (hostname === undefined || inFlight + waiting === 0 || keys.length >= MOST_SHOWN) return [];
  const names = (resolveHost(options, hostname).policy.keys ?? []).map(({ name }) => name);
  return names.filter((name) => name !== BUCKET_KEY && !keys.some(({ key }) => key === name));
}

async function stateOf(listen: ListenAddress, token: string | undefined, get: Get): Promise<ServiceState | undefined> {
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await get(listen, `${ROUTE_PATHS.state.path}?limit=100&sessions=0`, headers);
    return answer.ok ? ((await answer.json()) as ServiceState) : undefined;
  } catch {
    return undefined;
  }
}
