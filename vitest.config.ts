import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { conditions } from "./vitest.conditions.ts";

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  // Where the global set-up runs.
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    // Only a port, until a test asks it for a database.
    globalSetup: ["packages/testkit/src/postgres/global-setup.ts"],
    include: ["{packages/*,examples}/test/**/*.{test,spec}.ts"],
    // By default one core is left idle, which on two cores means one file at a time. Many tests wait for processes, not for a core.
    maxWorkers: Math.max(2, availableParallelism()),
    // Tests with real processes, databases and browsers share the cores. The report marks a test that needed its second try.
    retry: process.env["CI"] === undefined ? 0 : 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
  },
});
