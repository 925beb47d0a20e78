import { defineConfig } from "vitest/config";
import { conditions } from "./vitest.conditions.ts";

/**
 * Pure tests: no server, no database, no browser, no other process. The files of a worker share their modules: most take
 * milliseconds, and loading the modules again for each of them would take twice as long as all tests.
 */
export const pure = {
  include: ["packages/{core,queue,protocol}/test/**/*.test.ts"],
  exclude: [
    "packages/{core,queue,protocol}/test/**/*.pg.test.ts",
    "packages/core/test/transfers/upload-server.test.ts",
    "packages/core/test/threads/**/*.test.ts",
  ],
  isolate: false,
};

// `npm run test:quick` runs them, and mutation testing a part of them.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    ...pure,
    maxWorkers: 2,
    testTimeout: 120_000,
    restoreMocks: true,
    execArgv: ["--expose-gc"],
  },
});
