import type { Readable } from "node:stream";
import type { ServiceState } from "@slotkeeper/protocol";
import { bundle } from "@slotkeeper/testkit/bundle";
import { Miniflare } from "miniflare";
import { afterEach } from "vitest";

/** The flags that a Worker with slots needs. */
export const FLAGS = ["nodejs_compat", "enable_request_signal"];

/** A Worker in real workerd. */
export interface TestWorker {
  readonly url: URL;
  /** Sends a request as a client would, over a connection. */
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>;
  readonly stop: () => Promise<void>;
}

export interface WorkerInit {
  /** TypeScript. Its relative imports start in this folder. */
  readonly script: string;
  /** Bindings of Durable Objects, with the names of their classes. Default: `SLOTS` of `Slots`. */
  readonly objects?: { readonly [binding: string]: string };
  readonly bindings?: { readonly [name: string]: string };
  /** A folder of static files. */
  readonly assets?: string;
  /** The compatibility date. */
  readonly date?: string;
  /** The folder of the storage. Default: it ends with the Worker. */
  readonly storage?: string;
}

const running = new Set<TestWorker>();

afterEach(async () => {
  for (const worker of running) await worker.stop();
  running.clear();
});

const bundled = new Map<string, Promise<string>>();

/** Bundled once for each text. */
export function bundleWorker(script: string): Promise<string> {
  let text = bundled.get(script);
  if (text === undefined) {
    text = bundle(script, import.meta.dirname, { external: ["node:*"] });
    bundled.set(script, text);
  }
  return text;
}

/** Starts a Worker that stops after the test. */
export async function startWorker(init: WorkerInit): Promise<TestWorker> {
  const started = await keepWorker(init);
  running.add(started);
  return started;
}

/** Starts a Worker. The caller stops it. */
export async function keepWorker(init: WorkerInit): Promise<TestWorker> {
  const { script, objects = { SLOTS: "Slots" }, bindings = {}, storage, assets, date = "2026-03-01" } = init;
  const worker = new Miniflare({
    modules: true,
    script: await bundleWorker(script),
    bindings,
    compatibilityDate: date,
    compatibilityFlags: FLAGS,
    durableObjects: Object.fromEntries(
      Object.entries(objects).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    // What it logs while objects are aborted on purpose.
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      stdout.resume();
      stderr.resume();
    },
    ...(assets === undefined ? {} : { assets: { directory: assets, routerConfig: { has_user_worker: true } } }),
    ...(storage === undefined ? {} : { durableObjectsPersist: storage }),
  });
  const url = await worker.ready;
  let stopped: Promise<void> | undefined;
  return {
    url,
    ask: (path, request) => fetch(new URL(path, url), request),
    stop: () => (stopped ??= worker.dispose()),
  };
}

/** The keys of the routes in tests. */
export const KEY = "the-shared-key-of-callers";
export const TOKEN = "the-bearer-of-operators";

/** A Worker that only serves the API. */
export const SERVING = `
  const options = { auth: "${KEY}", internalToken: "${TOKEN}" };
  export default { fetch: (request, env) => serve(request, env.SLOTS, options) };
`;

type HostState = ServiceState["hosts"][number];

/** The state of one host, as its object answers it. */
export async function stateOf({ ask }: TestWorker, host: string): Promise<HostState | undefined> {
  const response = await ask(`/api/v0/state?host=${encodeURIComponent(host)}`, { headers: operator });
  return ((await response.json()) as ServiceState).hosts[0];
}

/** The headers of operators. */
export const operator = { authorization: `Bearer ${TOKEN}` };

/** The first lines of every script: a class with these settings. */
export function slotsClass(config: object, options: object = {}): string {
  return `
    import { serve, slotFetch, slotObject } from "@slotkeeper/cloudflare";
    import { SlotClient } from "@slotkeeper/client";
    export class Slots extends slotObject(${JSON.stringify(config)}, ${JSON.stringify(options)}) {}
  `;
}
