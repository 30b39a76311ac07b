import { afterEach } from 'vitest';

// With WRIT_TEST_TWICE set, the first attempt of every test fails once it is through. The second has to pass beside
// whatever the first has left, as it has to after one that a slow machine broke off.
const attempted = new Set<string>();

afterEach(({ task }) => {
  if (attempted.has(task.id)) return;
  attempted.add(task.id);
  throw new Error('WRIT_TEST_TWICE is set: the first attempt fails');
});
