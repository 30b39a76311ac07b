import { GuardWithoutCheck } from './guard-without-check.js';

/** Neither asks nor guards: what it has is versions. */
export class NoFence extends GuardWithoutCheck {
  protected override async admit(): Promise<void> {}

  protected override async raise(): Promise<void> {}
}
