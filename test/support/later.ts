/**
 * What is waited for later, or never where the test fails before: how it ends is told to who waits for it. Without that,
 * a rejection would end the whole run, also when a second attempt of the test passes.
 */
export function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
