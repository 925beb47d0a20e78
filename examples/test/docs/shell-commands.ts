/** Checks the commands of a shell block without running them: do scripts, files, flags and routes exist? */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROUTES } from "@slotkeeper/protocol/schemas";
import { ROOT } from "./pages.ts";

type Check = (args: readonly string[]) => string[];

const scripts = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> })
  .scripts;

/** Other programs that the pages may use. */
const FOREIGN =
  "cat cd createdb do docker done echo export for gh git kill kubectl mkdir openssl pip psql seq sh sleep ssh systemctl until wait xargs".split(
    " ",
  );

const CHECKS: Record<string, Check> = {
  npm: ([command = "", script = ""]) => {
    if (command === "run") return script in scripts ? [] : [`no script "${script}"`];
    if (command === "start" || command === "test") return command in scripts ? [] : [`no script "${command}"`];
    return ["ci", "init", "install", "pack", "exec"].includes(command) ? [] : [`npm ${command}`];
  },
  node: (args) => {
    const file = args.find((arg) => !arg.startsWith("-")) ?? "";
    const source = file.replace(/(^|\/)dist\//, "$1src/").replace(/\.js$/, ".ts");
    const isOfReader = !file.includes("/");
    return isOfReader || existsSync(join(ROOT, file)) || existsSync(join(ROOT, source)) ? [] : [`no file ${file}`];
  },
  npx: ([command = "", ...args]) => {
    if (command === "slotkeeper") return slotkeeper(args);
    if (command === "vitest") return args.slice(1).filter((arg) => arg.includes("/") && !existsSync(join(ROOT, arg)));
    return ["tsc", "tsx", "wrangler", "size-limit"].includes(command) ? [] : [`npx ${command}`];
  },
  slotkeeper: (args) => slotkeeper(args),
  curl: (args) => {
    const url = args.find((arg) => /^"?(?:https?:|\$URL)/.test(arg)) ?? "";
    const path = url
      .replaceAll('"', "")
      .replace(/^\$URL/, "/api/v0")
      .replace(/^https?:\/\/[^/]+/, "")
      .replace(/\?.*/, "");
    return !isOurs(url) || Object.values(ROUTES).some((route) => matches(route.path, path)) ? [] : [`no route ${path}`];
  },
};

const isOurs = (url: string): boolean => /\$URL|127\.0\.0\.1:8080|slots/.test(url);

function matches(route: string, path: string): boolean {
  const pattern = route.replaceAll(".", "\\.").replaceAll(/\{[^}]+\}/g, "[^/]+");
  return new RegExp(`^${pattern}$`).test(path);
}

const helps = new Map<string, string>();

/** The flags must be in the command's own help. */
function slotkeeper([command = "", ...args]: readonly string[]): string[] {
  if (command.startsWith("-")) return [];
  let help = helps.get(command);
  if (help === undefined) {
    const bin = join(ROOT, "packages/cli/bin/slotkeeper.mjs");
    const { stdout, status } = spawnSync(process.execPath, [bin, command, "--help"], { encoding: "utf8" });
    help = status === 0 ? stdout : "";
    helps.set(command, help);
  }
  if (help === "") return [`no command slotkeeper ${command}`];
  const end = args.indexOf("--");
  const flags = (end < 0 ? args : args.slice(0, end)).filter((arg) => /^--?[a-z]/.test(arg));
  return flags
    .filter((flag) => !new RegExp(`${flag.replace(/=.*/, "")}\\b`).test(help))
    .map((flag) => `no flag ${flag}`);
}

export function shellProblems(code: string): string[] {
  const lines = code.replaceAll("\\\n", " ").split("\n");
  return lines.flatMap((line) => {
    const bare = line.replaceAll(/'[^']*'/g, "'…'").replace(/\s+#.*|^#.*/, "");
    return bare.split(/&&|\|\||;|\||\$\(/).flatMap((command) => commandProblems(command.trim()));
  });
}

function commandProblems(command: string): string[] {
  const words = command
    .replace(/\)$/, "")
    .split(/\s+/)
    .filter((word) => word !== "");
  while (/^\w+=/.test(words[0] ?? "")) words.shift();
  const [name, ...args] = words;
  if (name === undefined || FOREIGN.includes(name) || name.startsWith(".")) return [];
  const check = CHECKS[name];
  return check === undefined ? [`unknown program ${name} in: ${command}`] : check(args);
}
