import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { TestCluster } from "./test-cluster.ts";

/** The variable by which test files find the run's cluster. */
export const CLUSTER_SOCKET = "SLOTKEEPER_TEST_CLUSTER";

/** The run's cluster, started if this is the first to ask. */
export async function askForCluster(): Promise<TestCluster> {
  const path = process.env[CLUSTER_SOCKET];
  if (path === undefined) throw new Error("Expected vitest's global set-up of testkit/postgres to have run");
  const reply = JSON.parse(await text(connect(path))) as TestCluster | { readonly error: string };
  if ("error" in reply) throw new Error(`No database for tests: ${reply.error}`);
  return reply;
}
