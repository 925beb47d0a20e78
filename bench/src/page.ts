/**
 * Writes `docs/reference/benchmarks.md`: the in-process rows first, then those of the service. Each benchmark writes
 * its own part.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../../docs/reference/", import.meta.url));
const FILE = `${FOLDER}benchmarks.md`;
/** Where the second part begins. */
export const SERVICE_TITLE = "## The service over HTTP";

export const tableRow = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;

export function writeInProcessPart(text: string): void {
  write(text, partsOf().service);
}

export function writeServicePart(text: string): void {
  write(partsOf().inProcess, text);
}

function write(inProcess: string, service: string): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(
    FILE,
    [inProcess, service]
      .filter((part) => part !== "")
      .map((part) => part.trimEnd())
      .join("\n\n") + "\n",
  );
}

function partsOf(): { inProcess: string; service: string } {
  const page = existing();
  const at = page.indexOf(`${SERVICE_TITLE}\n`);
  return at === -1 ? { inProcess: page, service: "" } : { inProcess: page.slice(0, at), service: page.slice(at) };
}

function existing(): string {
  try {
    return readFileSync(FILE, "utf8");
  } catch {
    return "";
  }
}
