// The long form of the tests of `packages/cloudflare`, in real workerd.
//   npm run cloudflare                 all of them, about two minutes
//   npm run cloudflare -- kill 5000    SIGKILL of workerd while it answers this many grants (default: 2,000)
//   npm run cloudflare -- cost 5000    rows, requests and time per grant, over this many grants (default: 2,000)
import { spawnSync } from "node:child_process";

const RUNS = {
  kill: { file: "restart", title: "SIGKILL", variable: "SLOTKEEPER_KILLED_GRANTS" },
  cost: { file: "cost", title: "", variable: "SLOTKEEPER_COST_GRANTS" },
};

const [asked, grants = "2000"] = process.argv.slice(2);
if ((asked !== undefined && !(asked in RUNS)) || !/^[1-9]\d{1,6}$/.test(grants)) {
  console.error(
    `Expected ${Object.keys(RUNS).join(" or ")}, and a number of grants from 10, got ${process.argv.slice(2).join(" ")}`,
  );
  process.exit(2);
}
for (const [name, { file, title, variable }] of Object.entries(RUNS)) {
  if (asked !== undefined && asked !== name) continue;
  const args = ["vitest", "run", `packages/cloudflare/test/${file}.spec.ts`, "-t", title];
  const { status } = spawnSync("npx", ["--no-install", ...args], {
    stdio: "inherit",
    env: { ...process.env, [variable]: grants },
  });
  if (status !== 0) process.exitCode = 1;
}
