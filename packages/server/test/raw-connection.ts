import { connect, type Socket } from "node:net";
import { afterEach } from "vitest";
import type { Fixture } from "./service-fixture.ts";

const open = new Set<Socket>();

/** A connection to the service for raw bytes. It is destroyed after the test. */
export function connection(fixture: Fixture): Promise<Socket> {
  const { port, hostname } = new URL(fixture.url);
  return new Promise((resolve, reject) => {
    // Half open: like a hostile client, it does not answer the end of the other side.
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true }, () => resolve(socket));
    open.add(socket);
    socket.once("error", reject);
  });
}

/** What the service sends until it ends or cuts the connection. */
export async function rawAnswer(fixture: Fixture, text: string): Promise<string> {
  const socket = await connection(fixture);
  const said = everythingSaid(socket);
  socket.write(text);
  return said;
}

export function everythingSaid(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let said = "";
    socket.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    for (const event of ["end", "close", "error"]) socket.on(event, () => resolve(said));
  });
}

afterEach(() => {
  for (const socket of open) socket.destroy();
  open.clear();
});
