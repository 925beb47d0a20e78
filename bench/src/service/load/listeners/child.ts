/** Listeners of the events, in a process of their own: it opens the requested number, reads what they get and counts it. */
import { connect, type Socket } from "node:net";

const { hostname, port } = new URL(process.argv[2] ?? "http://127.0.0.1:8080");
const sockets = new Set<Socket>();
let bytes = 0;

function listen(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    sockets.add(socket);
    socket.once("data", () => resolve());
    socket.on("data", (chunk) => (bytes += chunk.length));
    socket.on("error", reject);
    socket.write(`GET /api/v0/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
  });
}

process.on("message", (wanted: number) => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  void Promise.all(Array.from({ length: wanted }, listen)).then(() => process.send?.({ bytes }));
});
