import type { Command } from 'commander';
import { action, type Cli } from '../cli.js';

/** `serve` and `demo` load what they run only when it is run: everything else should start at once. */
export function registerServe(program: Command, cli: Cli): void {
  const serve = program
    .command('serve')
    .description('run a coordinator until it is stopped; settings come from WRIT_* variables')
    .addHelpText('after', '\nPrints one JSON line on stdout when it is ready; logs go to stderr.');
  action(serve, cli, async () => {
    const { serve: run } = await import('../../main.js');
    return run(cli.env);
  });

  const demo = program.command('demo').description('show the main job on real processes; leaves nothing running');
  action(demo, cli, async () => {
    const { runDemo } = await import('../demo/index.js');
    return runDemo();
  });
}
