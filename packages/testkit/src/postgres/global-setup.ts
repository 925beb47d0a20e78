import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLUSTER_SOCKET } from "./cluster-socket.ts";
import { openCluster } from "./test-cluster.ts";

/**
 * vitest's global set-up: the run's one cluster, started by the first test file that asks for a database and by none
 * other. Files ask through a socket, because they run in other processes.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-tests-"));
  const path = process.platform === "win32" ? `\\\\.\\pipe\\${folder}` : join(folder, "cluster");
  let cluster: ReturnType<typeof openCluster> | undefined;
  const answer = async (socket: Socket) => {
    cluster ??= openCluster();
    const reply = await cluster.then(
      ({ dsn, prefix, template }) => ({ dsn, prefix, template }),
      (error: unknown) => ({ error: String(error) }),
    );
    socket.end(JSON.stringify(reply));
  };
  const server = createServer((socket) => void answer(socket.on("error", () => {})));
  await new Promise<void>((resolve, reject) => void server.once("error", reject).listen(path, resolve));
  process.env[CLUSTER_SOCKET] = path;
  return async () => {
    delete process.env[CLUSTER_SOCKET];
    server.close();
    await (await cluster?.catch(() => undefined))?.close();
    await rm(folder, { recursive: true, force: true });
  };
}
