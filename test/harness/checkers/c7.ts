import { answered, type Checker, groupBy, type Violation } from '../history.js';

/**
 * C7: a delayed write that carries an old token is refused by the target. At each target's resource a write never
 * follows a leased one with a greater token, nor comes after a newer holder had opened the resource.
 */
export const c7: Checker = (history) => {
  const violations: Violation[] = [];
  const opens = groupBy(
    answered(history, 'open').filter(({ told }) => told.accepted),
    ({ asked }) => asked.resource,
  );
  const accepted = answered(history, 'write').filter(({ told }) => told.accepted);
  for (const [resource, writes] of groupBy(accepted, ({ asked }) => asked.resource)) {
    const inOrder = writes.sort((a, b) => a.told.position - b.told.position);
    let newest: (typeof writes)[number] | undefined;
    for (const write of inOrder) {
      const opened = opens
        .get(resource)
        ?.find((open) => open.answered < write.sent && open.asked.token > write.asked.token);
      const behind = newest !== undefined && newest.asked.token > write.asked.token ? newest : opened;
      if (behind !== undefined)
        violations.push({
          promise: 'C7',
          what: `the target took a write to ${resource} with token ${write.asked.token} after ${behind.asked.token}`,
          calls: [behind.id, write.id],
          revisions: [],
          about: [write.asked.leaseId, resource],
        });
      if (write.asked.exclusive && write.asked.token >= (newest?.asked.token ?? 0)) newest = write;
    }
  }
  return violations;
};
