/** What was looked at, and what was found. `skipped`: it does not apply here. */
export interface Finding {
  readonly what: string;
  readonly verdict: 'ok' | 'warning' | 'problem' | 'skipped';
  readonly text: string;
}

/** How long anything that is asked may take to answer. */
export const ANSWER_MS = 3_000;

export const ok = (what: string, text: string): Finding => ({ what, verdict: 'ok', text });
export const warning = (what: string, text: string): Finding => ({ what, verdict: 'warning', text });
export const wrong = (what: string, text: string): Finding => ({ what, verdict: 'problem', text });
export const skipped = (what: string, text: string): Finding => ({ what, verdict: 'skipped', text });
