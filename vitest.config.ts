import { defineConfig } from "vitest/config";

// Tests run from the sources of every package, without a build: the export condition below is set in each package.json.
const conditions = ["@slotkeeper/source", "node", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // Where the global set-up runs.
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    // Only a port, until a test asks it for a database.
    globalSetup: ["packages/testkit/src/postgres/global-setup.ts"],
    include: ["{packages/*,examples}/test/**/*.{test,spec}.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
  },
});
