import { useState } from 'preact/hooks';
import { databaseNow, useSecond } from '../clock.js';
import { visible } from '../pure/foreign-text.js';
import { ago, inWords, millisOf, urgencyOf } from '../pure/moments.js';
import { inLowerCase, shortId } from '../pure/words.js';
import { Link } from '../router.js';

/** What somebody else wrote. It stands for itself, whatever its direction, and wraps wherever it must. */
export function Foreign({ text, class: name = '' }: { readonly text: string; readonly class?: string }) {
  return <bdi class={`foreign ${name}`}>{visible(text)}</bdi>;
}

/** A resource, with the way to what there is to know of it. */
export function Resource({ name, shown = name }: { readonly name: string; readonly shown?: string }) {
  return (
    <Link to="/resource" query={{ name }} class="resource-link" title={visible(name)}>
      <bdi class="resource">{visible(shown)}</bdi>
    </Link>
  );
}

interface IdProps {
  readonly id: string;
  /** All of it, where there is room. */
  readonly whole?: boolean;
}

export function RunLink({ id, whole = false }: IdProps) {
  return (
    <Link to={`/runs/${id}`} class="id" title={`run ${id}`}>
      {whole ? id : shortId(id)}
    </Link>
  );
}

export function LeaseLink({ id, whole = false }: IdProps) {
  return (
    <Link to={`/leases/${id}`} class="id" title={`lease ${id}`}>
      {whole ? id : shortId(id)}
    </Link>
  );
}

/** Copies a text, and says that it did. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" class="quiet small" aria-label={`Copy ${label}`} onClick={() => void copy()}>
      <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
    </button>
  );
}

/** A code of docs/reason-codes.md, with the way to what it means and what to do. */
export function Reason({ code, words = true }: { readonly code: string; readonly words?: boolean }) {
  if (code === '') return null;
  return (
    <Link
      to="/reasons"
      query={{ code: code.toUpperCase() }}
      class="reason"
      title={`What ${code} means, and what to do`}
    >
      {words ? inLowerCase(code) : code}
    </Link>
  );
}

type Tone = 'calm' | 'good' | 'warn' | 'bad' | 'idle';

const TONES: Readonly<Record<string, Tone>> = {
  ACTIVE: 'good',
  WAITING: 'warn',
  ENDED: 'idle',
  WAITING_FOR_INPUT: 'warn',
  BLOCKED: 'warn',
  STOPPING: 'bad',
  STOPPED: 'idle',
  FINISHED: 'idle',
  FAILED: 'bad',
  EXPIRED: 'idle',
  CURRENT: 'good',
  NEXT: 'calm',
  PREVIOUS: 'warn',
  RETIRED: 'idle',
};

/** A state: colour helps, the word says it. */
export function State({ code }: { readonly code: string }) {
  return <span class={`state tone-${TONES[code] ?? 'calm'}`}>{inLowerCase(code) || 'unknown'}</span>;
}

export function Badge({ tone = 'calm', children }: { readonly tone?: Tone; readonly children: string }) {
  return <span class={`badge tone-${tone}`}>{children}</span>;
}

/** When something was: how long ago, and exactly when one points at it. */
export function When({ at, absent = '' }: { readonly at: string | undefined; readonly absent?: string }) {
  const now = useSecond();
  const ms = millisOf(at);
  if (ms === null) return <>{absent}</>;
  return (
    <time dateTime={at} title={at} class="when">
      {ago(ms, now)}
    </time>
  );
}

/** A moment as the log has it. */
export function Exactly({ at }: { readonly at: string | undefined }) {
  const ms = millisOf(at);
  if (ms === null) return null;
  return (
    <time dateTime={at} title={at} class="when">
      {new Date(ms).toISOString().replace('T', ' ').slice(0, 23)}
      <span class="zone"> UTC</span>
    </time>
  );
}

/** What is left until a moment of the database's clock. */
export function Countdown({ until }: { readonly until: string | undefined }) {
  useSecond();
  const ms = millisOf(until);
  if (ms === null) return null;
  const left = ms - databaseNow();
  const urgency = urgencyOf(left);
  return (
    <time dateTime={until} title={until} class={`countdown urgency-${urgency}`}>
      {urgency === 'over' ? 'expired' : inWords(left)}
    </time>
  );
}
