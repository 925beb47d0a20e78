import { defineConfig } from "vitest/config";

// Tests run from the sources of every package, without a build: the export condition below is set in each package.json.
const conditions = ["@slotkeeper/source", "module", "node", "import", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["packages/*/test/**/*.{test,spec}.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
  },
});
