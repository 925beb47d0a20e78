/**
 * The limit: it reads a request and answers at once, with an answer as long as that of the service. It never answers
 * calls for `held.example`.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

let fence = Date.now() * 1000;
const queryToken = `fq1.${"x".repeat(183)}`;
const granted = () =>
  JSON.stringify({
    result: "granted",
    queryToken,
    slotToken: `slot_${"x".repeat(32)}`,
    fence: ++fence,
    leaseMs: 30_000,
  });

// As long as the service keeps idle connections.
const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    if (body.includes("held.example")) return;
    const text = request.url?.endsWith("/release") === true ? '{"result":"ok"}' : granted();
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  console.log(JSON.stringify({ event: "listening", url: `http://127.0.0.1:${port}` }));
});
