import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";

const servers = new Set<Server>();

afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});

/** A server for the current test, which closes after it. It fails above a number of requests at a time; each takes a while. While it is paused, none ends. */
export async function startUpstream(most: number, holdMs: number) {
  let paused: Promise<void> = Promise.resolve();
  const upstream = {
    url: "",
    running: 0,
    most: 0,
    started: 0,
    /** For each request in the order of its start, from start to end. */
    holds: [] as { readonly bucket: string; ms: number }[],
    targets: [] as (string | undefined)[],
    pause,
  };
  /** Returns a function that ends the pause. */
  function pause(): () => void {
    let goOn: (() => void) | undefined;
    paused = new Promise((resolve) => {
      goOn = resolve;
    });
    return () => goOn?.();
  }
  const server = createServer((request, response) => {
    const startedAt = performance.now();
    const hold = { bucket: String(request.headers["x-bucket"]), ms: 0 };
    upstream.holds.push(hold);
    upstream.targets.push(request.url);
    upstream.started++;
    upstream.most = Math.max(upstream.most, ++upstream.running);
    const isTooMuch = upstream.running > most;
    let end: NodeJS.Timeout | undefined;
    void paused.then(() => {
      end = setTimeout(() => response.writeHead(isTooMuch ? 500 : 200).end("from upstream"), holdMs);
    });
    response.on("close", () => {
      clearTimeout(end);
      hold.ms = performance.now() - startedAt;
      upstream.running--;
    });
  });
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return upstream;
}
