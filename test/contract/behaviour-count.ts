import type { Reporter, TestModule } from "vitest/node";

/** The suites that run the behaviours, each over several kinds of connection. */
const suites = /\/test\/(contract\/transports|browser\/contract)\.test\.ts$/;

/** Says at the end how many behaviours were tried on how many kinds of connection, and how many of those tests passed. */
export class BehaviourCount implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const kinds = new Map<string, string[]>();
    for (const module of modules.filter(({ moduleId }) => suites.test(moduleId))) {
      for (const suite of module.children.suites()) {
        const [, kind] = /^over (.+)$/.exec(suite.name) ?? [];
        if (kind === undefined) continue;
        const states = [...suite.children.tests()].map((test) => test.result().state);
        kinds.set(kind, states);
      }
    }
    if (kinds.size === 0) return;
    const tests = [...kinds.values()].flat();
    const behaviours = Math.max(...[...kinds.values()].map(({ length }) => length));
    const passed = tests.filter((state) => state === "passed").length;
    const names = [...kinds.keys()].join("; ");
    process.stdout.write(`Contract suite: ${behaviours} behaviours x ${kinds.size} kinds of connection (${names}): `);
    process.stdout.write(`${passed} of ${behaviours * kinds.size} passed\n`);
  }
}
