import { type Service, VERSION } from "@slotkeeper/server";

/** Prints the dashboard first, then the address, the store, and a first request that works. */
export function announce(service: Service, isJson: boolean): string {
  const { url, address, storeDescription: store, config } = service;
  const dashboard = `${url}/`;
  const tryIt = firstRequest(service);
  if (isJson)
    return `${JSON.stringify({ event: "listening", version: VERSION, url, dashboard, address, store, config: config.version, tryIt })}\n`;
  return `slotkeeper ${VERSION}
  dashboard  ${dashboard}
  listening  ${url}${reachOf(service)}
  store      ${store}
  config     ${config.version}
  try it     ${tryIt}
`;
}

/**
 * Says which machines can reach the service if the address does not show it, and how to change that if it is the
 * default.
 */
function reachOf({ address, url, config }: Service): string {
  const { port } = new URL(url);
  if (address === "::" || address === "0.0.0.0")
    return `\n             and every other address of this machine, port ${port}`;
  if (config.origins.get("listen") !== "default") return "";
  return "\n             only from this machine; to open it: set auth.enabled and auth.token, or --listen :8080";
}

/** Never prints a key: if one is needed, the line takes it from the environment. */
function firstRequest({ url, config }: Service): string {
  const { auth } = config.settings;
  const key = auth === undefined ? "" : ` -H "${auth.header}: $SLOTKEEPER_AUTH__TOKEN"`;
  return `curl -sS ${url}/api/v0/fairqueue/acquire${key} -d '{"hostname":"example.com","bucket":"me","waitMs":1000}'`;
}
