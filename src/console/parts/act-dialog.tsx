import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { asProblem, type Problem } from '../api/problem.js';
import { Dialog } from './dialog.js';
import { TextField } from './field.js';
import { ProblemNote } from './problem.js';

interface ActDialogProps<T> {
  readonly title: string;
  /** What the button says: the act, not "OK". */
  readonly button: string;
  readonly danger?: boolean;
  /** The log keeps why; `optional`: it may be left out, `none`: nobody is asked. */
  readonly reason?: 'required' | 'optional' | 'none';
  /** What else must be right before it can be done. */
  readonly ready?: boolean;
  readonly act: (reason: string) => Promise<T>;
  /** What came of it. */
  readonly result: (value: T) => ComponentChildren;
  readonly onClose: () => void;
  /** What it will do, before one does it. */
  readonly children: ComponentChildren;
}

/** An act that changes something: what it will do is said before, and what it did after. */
export function ActDialog<T>(props: ActDialogProps<T>) {
  const { title, button, danger = false, reason = 'required', ready = true, act, result, onClose, children } = props;
  const [why, setWhy] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [done, setDone] = useState<{ readonly value: T } | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      setDone({ value: await act(why.trim()) });
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {done !== null ? (
        <div class="form">
          <div role="status" class="form">
            {result(done.value)}
          </div>
          <div class="buttons">
            <button type="button" class="primary" onClick={onClose} ref={(element) => element?.focus()}>
              Close
            </button>
          </div>
        </div>
      ) : (
        <form class="form" onSubmit={(event) => void submit(event)}>
          {children}
          {reason !== 'none' && (
            <TextField
              label={reason === 'optional' ? 'Why (may be left out)' : 'Why'}
              value={why}
              onChange={setWhy}
              required={reason === 'required'}
              maxLength={1024}
              hint="It is kept in the log."
              error={problem?.violations.find(({ field }) => field === 'reason')?.description}
            />
          )}
          {problem !== null && <ProblemNote problem={problem} what="It was not done." />}
          <div class="buttons">
            <button type="button" onClick={onClose}>
              Cancel
            </button>
            <button
              type="submit"
              class={danger ? 'danger' : 'primary'}
              disabled={busy || !ready || (reason === 'required' && why.trim() === '')}
            >
              {busy ? 'Working…' : button}
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
