// Three processes call one simulated model API through a service. The service charges each request its estimate and gives
// back what it did not use, so that together they use the tokens of the API, and not more.
//
//   npm run build && node examples/dist/model-api-fleet.js [--seconds 10]
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ServeProcess } from "@slotkeeper/testkit/fleet";
import { HttpModelApi } from "./model-api/http-upstream.ts";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "10" } } });
const seconds = Number(values.seconds);
const HOSTNAME = "api.example.com";
const TEAMS = ["red", "green", "blue"] as const;
const TOKENS = { limit: 3_000, perSeconds: 1, burst: 3_000 } as const;

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-model-api-"));
const config = join(folder, "config.json");
const hosts = { [HOSTNAME]: { maxSlotPerHost: 30, maxSlotPerIp: -1, budgets: { tokens: TOKENS } } };
writeFileSync(config, JSON.stringify({ listen: "127.0.0.1:0", fairQueue: { hosts } }));

/** The same rate, and room for a second of calls that arrive late. */
const api = await HttpModelApi.start({ tokensPerSecond: TOKENS.limit, burst: TOKENS.burst + TOKENS.limit });
const service = await ServeProcess.start(config);
const program = fileURLToPath(new URL("model-api/team.js", import.meta.url));
let startedAt = 0;
try {
  const teams = TEAMS.map((team) => fork(program, [service.url, api.url, HOSTNAME, team, String(seconds)]));
  await Promise.all(teams.map((team) => once(team, "message")));
  startedAt = performance.now();
  for (const team of teams) team.send("begin");
  const codes = await Promise.all(teams.map(async (team) => (await once(team, "exit"))[0] as number | null));
  if (codes.some((code) => code !== 0)) throw new Error(`A process ended with ${codes.join(", ")}`);
} finally {
  await service.terminate();
  api.close();
  rmSync(folder, { recursive: true });
}
const tookSeconds = (performance.now() - startedAt) / 1000;
const most = TOKENS.burst + TOKENS.limit * tookSeconds;
const used = [...api.tokensByTeam.values()].reduce((sum, tokens) => sum + tokens, 0);
for (const [team, tokens] of api.tokensByTeam) console.log(`${team.padEnd(6)} ${tokens} tokens`);
console.log(`used   ${((used / most) * 100).toFixed(1)} % of what the budget allows`);
console.log(`refused ${api.refused} of ${api.served + api.refused} requests`);
