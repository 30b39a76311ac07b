import type { FenceDecision } from '../../../src/clients/target/index.js';
import { Service } from './service.js';

export const ALLOWED: FenceDecision = {
  allowed: true,
  reason: 'ok',
  message: '',
  writes: [],
  logRevision: undefined,
  validUntil: undefined,
  holder: undefined,
  error: undefined,
};

/** Has a guard, and never asks: it knows newer holders, and nothing of who may write. */
export class GuardWithoutCheck extends Service {
  protected override async ask(): Promise<FenceDecision> {
    return ALLOWED;
  }
}
