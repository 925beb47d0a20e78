import { readFileSync } from "node:fs";
import type { CommandName } from "./commands/commands.ts";
import { EXIT } from "./exit-codes.ts";
import type { Run } from "./read-flags.ts";

/** All packages share one version. Read here, because importing the server takes half a second. */
function version(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Each command loads only what it needs, so that a script that calls `release` does not load the server. */
const RUNS: { readonly [name in CommandName]: () => Promise<Run> } = {
  serve: async () => (await import("./serve.ts")).serve,
  migrate: async () => (await import("./migrate.ts")).migrateCommand,
  doctor: async () => (await import("./doctor.ts")).doctorCommand,
  acquire: async () => (await import("./acquire.ts")).acquireCommand,
  release: async () => (await import("./release.ts")).releaseCommand,
  status: async () => (await import("./status.ts")).statusCommand,
  exec: async () => (await import("./exec.ts")).execCommand,
  top: async () => (await import("./top/top.ts")).top,
  who: async () => (await import("./operate/who.ts")).whoCommand,
  limit: async () => (await import("./operate/limit.ts")).limitCommand,
  revoke: async () => (await import("./operate/actions.ts")).revokeCommand,
  breaker: async () => (await import("./operate/actions.ts")).breakerCommand,
  pause: async () => (await import("./operate/actions.ts")).pauseCommand,
  resume: async () => (await import("./operate/actions.ts")).resumeCommand,
  completion: async () => (await import("./completion/completion.ts")).completionCommand,
  keeper: async () => (await import("./local/keeper.ts")).keeperCommand,
};

/** Runs one command line, and returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  // If the reader stops early, like `head`, that is not a failure.
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) =>
    process.exit(code === "EPIPE" ? EXIT.ok : EXIT.failed),
  );
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") {
    process.stdout.write(`${version()}\n`);
    return EXIT.ok;
  }
  const load = name !== undefined && Object.hasOwn(RUNS, name) ? RUNS[name as CommandName] : undefined;
  if (load !== undefined) return (await load())(rest);
  const { helpText, unknownCommand } = await import("./help.ts");
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(helpText(version()));
    return EXIT.ok;
  }
  process.stderr.write(name === undefined ? `Expected a command.\n\n${helpText(version())}` : unknownCommand(name));
  return EXIT.usage;
}
