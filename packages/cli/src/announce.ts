import { type Service, VERSION } from "@slotkeeper/server";

/** The dashboard first; then where it listens, which store it uses, and a first request that works. */
export function announce(service: Service, isJson: boolean): string {
  const { url, storeDescription: store, config } = service;
  const dashboard = `${url}/`;
  const tryIt = firstRequest(service);
  if (isJson)
    return `${JSON.stringify({ event: "listening", version: VERSION, url, dashboard, store, config: config.version, tryIt })}\n`;
  return `slotkeeper ${VERSION}
  dashboard  ${dashboard}
  listening  ${url}
  store      ${store}
  config     ${config.version}
  try it     ${tryIt}
`;
}

/** A key is never printed: where one is needed, the line takes it from the environment. */
function firstRequest({ url, config }: Service): string {
  const { auth } = config.settings;
  const key = auth === undefined ? "" : ` -H "${auth.header}: $SLOTKEEPER_AUTH__TOKEN"`;
  return `curl -sS ${url}/api/v0/fairqueue/acquire${key} -d '{"hostname":"example.com","ipBucket":"me","waitMs":1000}'`;
}
