/**
 * Writes `docs/reference/benchmarks.md`: the in-process rows first, then those of the service, then those of constraints.
 * Each benchmark writes its own part.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../docs/reference/", import.meta.url));
const FILE = `${FOLDER}benchmarks.md`;
/** Where the second part begins, and the third. */
export const SERVICE_TITLE = "## The service over HTTP";
export const CONSTRAINTS_TITLE = "## Constraints";

export const tableRow = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

export function writeInProcessPart(text: string): void {
  write([text, ...partsOf().slice(1)]);
}

export function writeServicePart(text: string): void {
  const [inProcess = "", , constraints = ""] = partsOf();
  write([inProcess, text, constraints]);
}

export function writeConstraintsPart(text: string): void {
  write([...partsOf().slice(0, 2), text]);
}

function write(parts: readonly string[]): void {
  mkdirSync(FOLDER, { recursive: true });
  const kept = parts.map((part) => part.trimEnd()).filter((part) => part !== "");
  writeFormatted(FILE, `${kept.join("\n\n")}\n`);
}

/** As `npm run format` would leave it. */
export function writeFormatted(file: string, text: string): void {
  writeFileSync(file, text);
  execFileSync("npx", ["biome", "format", "--write", file], { cwd: FOLDER, stdio: "ignore" });
}

/** The three parts of the page. One that it does not have is empty. */
function partsOf(): string[] {
  const page = existing();
  const beginOf = (title: string, otherwise: number) => {
    const at = page.indexOf(`${title}\n`);
    return at === -1 ? otherwise : at;
  };
  const constraints = beginOf(CONSTRAINTS_TITLE, page.length);
  const service = beginOf(SERVICE_TITLE, constraints);
  return [page.slice(0, service), page.slice(service, constraints), page.slice(constraints)];
}

function existing(): string {
  try {
    return readFileSync(FILE, "utf8");
  } catch {
    return "";
  }
}
