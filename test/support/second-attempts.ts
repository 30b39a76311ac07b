import type { Reporter, TestModule } from 'vitest/node';

/** Names each test that passed only on its second attempt, and why the first one failed. */
export default class SecondAttempts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests('passed')) {
        if (test.diagnostic()?.flaky !== true) continue;
        const [first] = test.result().errors ?? [];
        const [why = ''] = (first?.message ?? '').split('\n');
        console.log(`only on a second attempt: ${module.relativeModuleId} > ${test.fullName}: ${why}`);
      }
    }
  }
}
