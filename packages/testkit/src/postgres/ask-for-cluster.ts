import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { TestCluster } from "./test-cluster.ts";

/** The variable with the address of the cluster of this run: a port on the loopback, and a secret. */
export const CLUSTER_ADDRESS = "SLOTKEEPER_TEST_CLUSTER";

/** Returns the cluster of this run. The first call starts it. */
export async function askForCluster(): Promise<TestCluster> {
  const [port, secret] = process.env[CLUSTER_ADDRESS]?.split(":") ?? [];
  if (secret === undefined) throw new Error("Expected vitest's global set-up of testkit/postgres to have run");
  const socket = connect(Number(port), "127.0.0.1");
  socket.write(secret);
  const reply = JSON.parse(await text(socket)) as TestCluster | { readonly error: string };
  if ("error" in reply) throw new Error(`No database for tests: ${reply.error}`);
  return reply;
}
