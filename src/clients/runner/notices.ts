import type { Timestamp } from '../../gen/google/protobuf/timestamp.js';
import { type LeaseNotice, LeaseNoticeKind } from '../../gen/writ/v1/lease_service.js';
import { timestampMicros } from '../common/time.js';
import type { LeaseEventHub } from './events.js';

/** Makes events of notices: the coordinator tells with every renewal what is so, listeners are told what is new. */
export class Notices {
  private wanted: ReadonlySet<string> = new Set();
  /** When each input was last changed, as far as it was told. */
  private readonly changedAt = new Map<string, number>();

  constructor(private readonly hub: LeaseEventHub) {}

  /** Resources that another run waits for, as of the last renewal. */
  get askedToYield(): readonly string[] {
    return [...this.wanted];
  }

  /** Resources that were read and have changed since the grant. */
  get changedInputs(): readonly string[] {
    return [...this.changedAt.keys()];
  }

  hear(notices: readonly LeaseNotice[]): void {
    const wanted = new Set(ofKind(notices, LeaseNoticeKind.LEASE_NOTICE_KIND_ASKED_TO_YIELD).map((n) => n.resource));
    const anew = [...wanted].filter((resource) => !this.wanted.has(resource));
    this.wanted = wanted;
    if (anew.length > 0) this.hub.emit('asked_to_yield', { resources: anew });
    for (const { resource, changedAt } of ofKind(notices, LeaseNoticeKind.LEASE_NOTICE_KIND_INPUT_CHANGED))
      this.changedNow(resource, changedAt);
  }

  /** Between two renewals. */
  wantedNow(resource: string): void {
    if (this.wanted.has(resource)) return;
    this.wanted = new Set([...this.wanted, resource]);
    this.hub.emit('asked_to_yield', { resources: [resource] });
  }

  changedNow(resource: string, changedAt: Timestamp | undefined): void {
    const changedAtMicros = timestampMicros(changedAt) ?? 0;
    if (changedAtMicros <= (this.changedAt.get(resource) ?? -1)) return;
    this.changedAt.set(resource, changedAtMicros);
    this.hub.emit('input_changed', { resource, changedAtMicros });
  }
}

const ofKind = (notices: readonly LeaseNotice[], kind: LeaseNoticeKind) =>
  notices.filter((notice) => notice.kind === kind);
