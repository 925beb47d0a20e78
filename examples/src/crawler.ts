/**
 * A polite crawler: at most four requests at a time, one per host, a pause between two requests to the same host, and
 * at most a hundred pages. `crawl` is one program; it is simulated for an hour of virtual time first, and then run for
 * real, unchanged, against a small site on this machine. `node examples/dist/crawler.js`
 */
import { createServer } from "node:http";
import {
  acquireSemaphore,
  createSemaphore,
  delay,
  fromPromise,
  log,
  now,
  type Program,
  type PromiseRequest,
  releaseSemaphore,
  run,
  type SemaphoreHandle,
  simulate,
  spawn,
  type Task,
  tryCatch,
  wait,
  withSemaphore,
} from "slotkeeper/effects";

export interface Page {
  readonly url: string;
  readonly links: readonly string[];
}

export interface CrawlOptions {
  readonly start: readonly string[];
  readonly maxPages: number;
  readonly atOnce: number;
  readonly pauseMs: number;
}

export interface Crawled {
  readonly pages: readonly string[];
  readonly failed: readonly string[];
  readonly tookMs: number;
}

export function* crawl(options: CrawlOptions): Program<Crawled> {
  const startedAt = yield* now();
  const requests = yield* createSemaphore(options.atOnce, { name: "requests" });
  const hosts = new Map<string, SemaphoreHandle>();
  const seen = new Set<string>();
  const failed: string[] = [];
  const tasks: Task<void>[] = [];

  function* visit(url: string): Program<void> {
    const { host } = new URL(url);
    const page = yield* politely(hosts.get(host) as SemaphoreHandle, requests, url, options.pauseMs);
    if (page === undefined) failed.push(url);
    for (const link of page?.links ?? []) yield* discover(link);
  }

  function* discover(url: string): Program<void> {
    if (seen.has(url) || seen.size >= options.maxPages) return;
    seen.add(url);
    const { host } = new URL(url);
    if (!hosts.has(host)) hosts.set(host, yield* createSemaphore(1, { name: host }));
    tasks.push(yield* spawn(visit(url), { name: url }));
  }

  for (const url of options.start) yield* discover(url);
  // The list grows during the loop: every page that is found is waited for.
  for (const task of tasks) yield* wait(task);
  return { pages: [...seen].filter((url) => !failed.includes(url)), failed, tookMs: (yield* now()) - startedAt };
}

/** One request to a host at a time, and a pause before the next: the permit of the host is kept during the pause. */
function* politely(
  host: SemaphoreHandle,
  requests: SemaphoreHandle,
  url: string,
  pauseMs: number,
): Program<Page | undefined> {
  yield* acquireSemaphore(host);
  try {
    const outcome = yield* tryCatch(withSemaphore(requests, fetchPage(url)));
    yield* log(outcome.ok ? `${url}: ${outcome.value.links.length} links` : `${url}: ${String(outcome.error)}`);
    yield* delay(pauseMs);
    return outcome.ok ? outcome.value : undefined;
  } finally {
    yield* releaseSemaphore(host);
  }
}

/** The only access to the outside world. The label identifies the request in a simulation. */
function* fetchPage(url: string): Program<Page> {
  return yield* fromPromise((signal) => getPage(url, signal), { label: url });
}

async function getPage(url: string, signal: AbortSignal): Promise<Page> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const links = [...(await response.text()).matchAll(/href="([^"]+)"/g)].map(
    ([, href]) => new URL(href as string, url).href,
  );
  return { url, links };
}

/** A site for the simulation: each page links to two others, is slow or fast, and one in ten is broken. */
export function* simulatedPage({ label = "" }: PromiseRequest): Program<Page> {
  const { origin, pathname } = new URL(label);
  const id = Number(pathname.slice(1));
  yield* delay(200 + (id % 7) * 300);
  if (id % 10 === 9) throw new Error("status 500");
  return { url: label, links: [2 * id + 1, 2 * id + 2].map((next) => `${origin}/${next}`) };
}

/** The same kind of site for real, on a port of this machine. */
async function serveSite(): Promise<{ origin: string; close: () => void }> {
  const server = createServer((request, response) => {
    const id = Number(request.url?.slice(1));
    if (id % 10 === 9) response.statusCode = 500;
    response.end(`<a href="/${2 * id + 1}">left</a> <a href="/${2 * id + 2}">right</a>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close() };
}

export const hourOfCrawling: CrawlOptions = {
  start: ["http://a.example/0", "http://b.example/0", "http://c.example/0"],
  maxPages: 1_000,
  atOnce: 4,
  pauseMs: 10_000,
};

export async function main(print: (line: string) => void = console.log): Promise<void> {
  const startedAt = performance.now();
  const simulated = simulate(crawl(hourOfCrawling), { resolver: simulatedPage });
  const { pages, failed, tookMs } = simulated.value;
  const realMs = performance.now() - startedAt;
  print(
    `Simulated: ${pages.length} pages, ${failed.length} failures, ${(tookMs / 60_000).toFixed(1)} minutes of crawling`,
  );
  print(`in ${realMs.toFixed(0)} ms; permits leaked: ${simulated.permitsLeaked.length}.`);

  const site = await serveSite();
  try {
    const real = await run(crawl({ start: [`${site.origin}/0`], maxPages: 40, atOnce: 4, pauseMs: 5 }));
    print(`For real: ${real.pages.length} pages, ${real.failed.length} failures.`);
  } finally {
    site.close();
  }
}

if (process.argv[1]?.endsWith("crawler.js")) await main();
