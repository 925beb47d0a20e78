import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** Packs every file beside itself once, so that the service never compresses. */
function packed(): Plugin {
  let folder = "";
  return {
    name: "packed",
    apply: "build",
    configResolved({ build }) {
      folder = build.outDir;
    },
    closeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !/\.(?:html|js|css|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        const content = readFileSync(path);
        writeFileSync(`${path}.br`, brotliCompressSync(content));
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}

// The build lies in the server's package, which serves and publishes it.
export default defineConfig({
  root: import.meta.dirname,
  logLevel: "warn",
  plugins: [packed()],
  build: {
    outDir: join(import.meta.dirname, "../server/dist/dashboard"),
    emptyOutDir: true,
    target: "es2022",
    // The policy refuses inlined data, and a browser that knows modules needs no polyfill.
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
