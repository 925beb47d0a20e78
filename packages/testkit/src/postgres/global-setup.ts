import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { CLUSTER_ADDRESS } from "./ask-for-cluster.ts";
import { openCluster } from "./test-cluster.ts";

/**
 * vitest's global set-up: the run's one cluster, started by the first test file that asks for a database and by none
 * other. Files ask over the loopback, because they run in other processes; a secret keeps strangers from the answer, which
 * has the superuser's password. A port, not a socket of the file system: nothing is left of it if the run is killed.
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
