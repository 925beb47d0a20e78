/** HTTP servers in place of a service. All are closed after the test. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";
import { granted } from "./scripted-service.ts";

const servers = new Set<Server>();

export async function startServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Redirects every call to an address that would grant it, and counts both. `page` is an empty page of another origin. */
export async function startRedirects(status = 307) {
  const seen = { redirected: 0, followed: 0 };
  const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
  const target = await startServer((_, response) => {
    seen.followed++;
    response.writeHead(200, { ...cors, "content-type": "application/json" }).end(JSON.stringify(granted));
  });
  const url = await startServer(({ method, url: path = "" }, response) => {
    if (method === "OPTIONS") return void response.writeHead(204, cors).end();
    seen.redirected++;
    response.writeHead(status, { ...cors, location: target + path }).end();
  });
  const page = await startServer((_, response) =>
    response.setHeader("content-type", "text/html").end("<!doctype html>"),
  );
  return { url, page, seen };
}

afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});
