import type { ServiceHistory } from "@slotkeeper/protocol";
import { HistoryRing } from "../../live/history-ring.ts";
import { scrape } from "../../metrics/scrape.ts";
import { NO_SNIFF } from "../exchange.ts";
import type { Handler } from "../handler.ts";
import { operatorsHost, queryOf } from "../path-host.ts";

/** The last 15 minutes. A host that is not tracked has an empty history, and is tracked from now on. */
export const history: Handler = (exchange, context) => {
  const { activity } = context.telemetry;
  const text = queryOf(exchange).get("host");
  const found = text === null ? undefined : operatorsHost(exchange, text, context);
  if (found !== undefined && "errors" in found) {
    exchange.problem("BAD_FIELDS", undefined, { errors: found.errors });
    return;
  }
  const at = context.now();
  const columns = activity.history(found?.host);
  exchange.json({
    at,
    stepMs: activity.stepMs,
    ...(found === undefined ? {} : { host: found.host }),
    isTracked: columns !== undefined,
    ...(columns ?? new HistoryRing(at).read(at)),
  } satisfies ServiceHistory);
};

export const instances: Handler = async (exchange, context) => {
  const { presence, log } = context;
  try {
    exchange.json({ at: context.now(), ...(await presence.read()) });
  } catch (error) {
    log.warn("the instances could not be read", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};

export const events: Handler = (exchange, { telemetry, instance, version, live }) => {
  const { request, response } = exchange;
  if (telemetry.hub.isFull) {
    exchange.problem("NOT_READY", "Too many clients listen already, or the service is stopping");
    return;
  }
  response.writeHead(200, {
    ...NO_SNIFF,
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    // A proxy that buffers would delay the events.
    "X-Accel-Buffering": "no",
    "X-Request-Id": exchange.id,
  });
  if (request.method === "HEAD") response.end();
  else telemetry.hub.add(response, { instance, version, configVersion: live.config.version });
};

export const metrics: Handler = async (exchange, context) => {
  exchange.send(200, "text/plain; version=0.0.4; charset=utf-8", await scrape(context));
};
