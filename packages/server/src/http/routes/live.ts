import type { ServiceHistory } from "@slotkeeper/protocol";
import { HistoryRing } from "../../telemetry/history-ring.ts";
import type { OperatorContext } from "../context.ts";
import type { Handler } from "../dispatch.ts";
import { operatorsHost } from "../path-host.ts";

/** The last 15 minutes. A host that is not tracked has an empty history, and is tracked from now on. */
export const history: Handler<OperatorContext> = (exchange, context) => {
  const { activity } = context.telemetry;
  const text = exchange.query.get("host");
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

export const instances: Handler<OperatorContext> = async (exchange, context) => {
  const { presence, log } = context;
  try {
    exchange.json({ at: context.now(), ...(await presence.read()) });
  } catch (error) {
    log.warn("the instances could not be read", { requestId: exchange.id, error });
    exchange.problem("UNAVAILABLE");
  }
};

export const events: Handler<OperatorContext> = (exchange, { telemetry, instance, version, live }) => {
  const { hub } = telemetry;
  if (hub.isFull) {
    exchange.problem("NOT_READY", "Too many clients listen already, or the service is stopping");
    return;
  }
  // A proxy that buffers would delay the events.
  const stream = exchange.stream("text/event-stream", { "Cache-Control": "no-store", "X-Accel-Buffering": "no" });
  if (stream !== undefined) hub.add(stream, { instance, version, configVersion: live.config.version });
};
