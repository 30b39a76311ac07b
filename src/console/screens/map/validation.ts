import { useEffect, useState } from 'preact/hooks';
import { post } from '../../api/client.js';
import { asProblem, type Problem } from '../../api/problem.js';
import type { Answer, MapProblem } from '../../api/shapes.js';

/** What the coordinator says of a text. */
export interface Validation {
  readonly state: 'checking' | 'checked' | 'failed';
  readonly valid: boolean;
  readonly problems: readonly MapProblem[];
  /** Why it could not be checked. */
  readonly failure: Problem | null;
}

type Told = Answer<'ValidateConflictMapResponse'>;

/** After so long without a key. */
const REST_MS = 350;
const NOTHING: readonly MapProblem[] = [];

/** Checks the text whenever it has changed, assertions and all; an answer about an older text is dropped. */
export function useValidation(text: string, may: boolean): Validation {
  const [validation, setValidation] = useState<Validation>({
    state: 'checking',
    valid: false,
    problems: NOTHING,
    failure: null,
  });
  useEffect(() => {
    if (!may) return;
    const aborter = new AbortController();
    setValidation((before) => ({ ...before, state: 'checking' }));
    const timer = window.setTimeout(async () => {
      try {
        const { valid = false, problems = NOTHING } = await post<Told>(
          '/v1/conflict-map/validate',
          { document: text },
          { namespace: null, signal: aborter.signal },
        );
        if (!aborter.signal.aborted) setValidation({ state: 'checked', valid, problems, failure: null });
      } catch (error) {
        if (!aborter.signal.aborted)
          setValidation((before) => ({ ...before, state: 'failed', failure: asProblem(error) }));
      }
    }, REST_MS);
    return () => {
      window.clearTimeout(timer);
      aborter.abort();
    };
  }, [text, may]);
  return validation;
}
