/** The files of the repository that people read beside its pages: programs, tests, SQL and what is deployed. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./pages.ts";

const FOLDERS = ["packages", "python", "bench", "scripts", "examples", "deploy"];
const BUILT = /^(?:node_modules|dist.*|\.wrangler|__pycache__)$/;

/** Paths from the root of files whose name matches. */
export function sourceFiles(name: RegExp): string[] {
  return FOLDERS.flatMap((folder) => filesIn(folder, name)).sort();
}

function filesIn(folder: string, name: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return BUILT.test(entry.name) ? [] : filesIn(path, name);
    return name.test(entry.name) ? [path] : [];
  });
}
