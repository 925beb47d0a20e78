import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { CLUSTER_ADDRESS } from "./ask-for-cluster.ts";
import { openCluster } from "./test-cluster.ts";

/**
 * The global set-up of vitest: one cluster for the run, started by the first test file that asks for a database. Files
 * ask over the loopback, because they run in other processes. A secret protects the answer, which contains the password
 * of the superuser. It uses a port and not a socket file, so that nothing is left behind if the run is killed.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const secret = randomBytes(16).toString("hex");
  let cluster: ReturnType<typeof openCluster> | undefined;
  const answer = async (socket: Socket, asked: string) => {
    if (asked !== secret) return socket.destroy();
    cluster ??= openCluster();
    const reply = await cluster.then(
      ({ dsn, prefix, template }) => ({ dsn, prefix, template }),
      (error: unknown) => ({ error: String(error) }),
    );
    return socket.end(JSON.stringify(reply));
  };
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", (asked) => void answer(socket, asked.toString()));
  });
  await new Promise<void>((resolve, reject) => void server.once("error", reject).listen(0, "127.0.0.1", resolve));
  process.env[CLUSTER_ADDRESS] = `${(server.address() as AddressInfo).port}:${secret}`;
  return async () => {
    delete process.env[CLUSTER_ADDRESS];
    server.close();
    await (await cluster?.catch(() => undefined))?.close();
  };
}
