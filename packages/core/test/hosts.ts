/** Runs a module's `smoke()` inside hosts that are not Node, and programs inside a new Node process. */
import { spawn } from "node:child_process";
import { withModulePage } from "@slotkeeper/testkit/browser";
import { bundle } from "@slotkeeper/testkit/bundle";
import { Miniflare } from "miniflare";

/** Runs `smoke()` of the module in a real `workerd`. `path` is relative to this folder. */
export async function smokeInWorkerd(path: string): Promise<unknown> {
  const script = await bundle(
    `
    import { smoke } from "${path}";
    export default { fetch: async () => Response.json(await smoke()) };
  `,
    import.meta.dirname,
  );
  const worker = new Miniflare({ modules: true, script, compatibilityDate: "2025-01-01" });
  try {
    const response = await worker.dispatchFetch("http://localhost/");
    return await response.json();
  } finally {
    await worker.dispose();
  }
}

/** Runs `smoke()` of the module in a real browser. */
export function smokeInBrowser(path: string): Promise<unknown> {
  return withModulePage({ path, folder: import.meta.dirname }, (page) => page.evaluate("library.smoke()"));
}

/** Runs a program in a new Node process. A process that hangs is killed; then there is no exit code. */
export async function runProgram(program: string): Promise<{ code: number | null; output: string }> {
  const source = await bundle(program, import.meta.dirname);
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "-"], { timeout: 20_000 });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.on("close", (code) => resolve({ code, output }));
    child.stdin.end(source);
  });
}
