import chromium from "@sparticuz/chromium";
import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { BehaviourCount } from "./test/contract/behaviour-count.ts";

const executablePath = await chromium.executablePath();

export default defineConfig({
  test: {
    // an unhandled rejection anywhere fails the run; that is vitest's default and part of what these tests prove
    dangerouslyIgnoreUnhandledErrors: false,
    // one for each of two cores; the default leaves one of them to the runner, which mostly waits
    maxWorkers: 2,
    reporters: ["default", new BehaviourCount()],
    projects: [
      {
        test: {
          name: "node",
          include: ["test/{unit,codegen,contract,vectors,faults,package,relay,page}/**/*.test.ts"],
          exclude: ["test/package/tarball.test.ts"],
          // zeromq.js aborts the process when a worker thread ends with a pending receive, so: processes
          pool: "forks",
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          globalSetup: ["test/browser/relay-setup.ts", "test/contract/rig-server.ts"],
          testTimeout: 60_000,
          browser: {
            enabled: true,
            headless: true,
            provider: playwright({ launchOptions: { executablePath, args: chromium.args } }),
            instances: [{ browser: "chromium" }],
            screenshotFailures: false,
          },
        },
      },
      {
        test: {
          name: "package",
          include: ["test/package/tarball.test.ts"],
          pool: "forks",
          testTimeout: 300_000,
        },
      },
      {
        test: {
          name: "peers",
          include: ["test/peers/**/*.test.ts"],
          pool: "forks",
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
