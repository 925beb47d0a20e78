import { ConfigError, loadConfig, printedKeys } from "@slotkeeper/server";
import type { Random } from "../../random/random.ts";
import { FuzzFailure, type FuzzTarget, ownMemory } from "../fuzz-target.ts";
import { oddJson, oddText, spoiled } from "../odd-values.ts";

const BATCH = 200;

/** A secret that no message and no printed configuration may contain. */
const SECRET = "s3cret-s3cret-s3cret-7c1f";

const GOOD = {
  listen: "127.0.0.1:8080",
  logLevel: "info",
  auth: { enabled: true, header: "X-FQ-Auth", token: SECRET },
  internalApiToken: SECRET,
  tokenKeys: [SECRET],
  cors: { origins: ["https://example.com"] },
  backend: { mode: "memory", postgres: { dsn: `postgres://u:${SECRET}@h/db`, poolSize: 4 } },
  limits: { connections: 10, heldPolls: 10, hosts: 10 },
  fairQueue: {
    maxWaitMs: 1000,
    pollIntervalMs: 100,
    pollWindowMs: 500,
    maxSlotPerHost: 5,
    maxSlotPerIp: 1,
    zombieTimeoutSeconds: 30,
    order: "fifo",
    cleanup: { enabled: true, intervalSeconds: 60 },
    weightedScheduler: { enabled: true, hotPendingFactor: 4 },
    breaker: { windowSeconds: 60, protectHttpCodes: [429], openSeconds: 10 },
    hosts: { "*.example.com": { maxSlotPerHost: 2, weights: { a: 2 } } },
  },
};

function environmentOf(random: Random): Record<string, string> {
  const names = [
    "LISTEN",
    "FAIR_QUEUE__MAX_WAIT_MS",
    "AUTH__TOKEN",
    "BACKEND__MODE",
    "PORT",
    "FAIR_QUEUE__HOSTS",
    "X__Y",
  ];
  const count = random.chance(0.3) ? random.int(1, 3) : 0;
  return Object.fromEntries(Array.from({ length: count }, () => [`SLOTKEEPER_${random.pick(names)}`, oddText(random)]));
}

function tryOne(random: Random): void {
  const flags = spoiled(random, GOOD, oddJson);
  const environment = environmentOf(random);
  const input = { flags, environment };
  try {
    const loaded = loadConfig({ flags: flags as never, environment });
    if (JSON.stringify(printedKeys(loaded)).includes(SECRET)) throw new FuzzFailure("A secret is printed", input);
  } catch (error) {
    if (error instanceof FuzzFailure) throw error;
    if (!(error instanceof ConfigError)) {
      throw new FuzzFailure(`Expected a ConfigError, got ${String(error)}`, input, error);
    }
    if (error.message.includes(SECRET)) throw new FuzzFailure("A message contains a secret", input, error);
  }
}

export const configTarget: FuzzTarget = {
  name: "config",
  title:
    "configurations and environments: a checked configuration or all problems by name, never a secret in a message",
  batch: BATCH,
  share: 0.15,
  open: () =>
    Promise.resolve({
      tryBatch: (random) => {
        for (let at = 0; at < BATCH; at++) tryOne(random);
        return Promise.resolve();
      },
      memory: ownMemory,
      close: () => Promise.resolve(),
    }),
};
