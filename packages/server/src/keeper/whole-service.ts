import type { IncomingMessage, ServerResponse } from "node:http";
import type { FairQueue, HostStore } from "@slotkeeper/queue";
import { CONTROL_TIMES, ConfigSource } from "../config/config-source.ts";
import { answering } from "../http/dispatch.ts";
import { NodeExchange } from "../http/node-exchange.ts";
import { SERVICE_ROUTER } from "../http/routes/service.ts";
import { LineLogger } from "../log/logger.ts";
import { Scrubber } from "../log/scrubber.ts";
import { ServiceClock } from "../platform/clock.ts";
import { newSecret } from "../platform/node-crypto.ts";
import { ServiceParts } from "../service-parts.ts";

interface WholeServiceInit {
  readonly queue: FairQueue;
  readonly store: HostStore;
  /** The settings of the queue, to be shown. */
  readonly fairQueue: object;
}

export interface WholeService {
  /** For the history and the live view. */
  readonly observe: ServiceParts["telemetry"]["observe"];
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

/** The routes of the service for operators, and the dashboard, over the queue of a keeper. */
export async function wholeService({ queue, store, fairQueue }: WholeServiceInit): Promise<WholeService> {
  const token = newSecret();
  const scrubber = new Scrubber();
  const instance = `keeper-${process.pid}`;
  const times = CONTROL_TIMES;
  const log = new LineLogger({
    write: (line) => process.stderr.write(line),
    isJson: true,
    hasColours: false,
    scrubber,
    now: Date.now,
  });
  log.level = "warn";
  const source = new ConfigSource({
    sources: { environment: {}, flags: { internalApiToken: token, fairQueue } },
    instance,
    times,
    log,
    learnSecrets: (secrets) => scrubber.learn(secrets),
    pause: () => Promise.resolve(),
  });
  const opened = {
    store,
    description: "the memory of the keeper",
    tokenKeys: undefined,
    health: () => ({ isReady: true }) as const,
    close: async () => {},
  };
  const base = { clock: new ServiceClock(), scrubber, log, opened, source, times, dashboard: undefined, queue };
  const named = { ...base, instance, reportedInstance: instance };
  const { telemetry, context } = new ServiceParts(await source.first(), named, async () => {});
  telemetry.start(queue);
  return {
    observe: telemetry.observe,
    serve(request, response) {
      // The folder of the socket has admitted the caller, so it may use the routes of operators.
      request.headers.authorization = `Bearer ${token}`;
      const exchange = new NodeExchange(request, response, false);
      void answering(exchange, context, () => SERVICE_ROUTER.serve(exchange, context));
    },
  };
}
