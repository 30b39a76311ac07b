import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { usePath } from '../router.js';

interface PageProps {
  readonly title: string;
  /** The heading, where it is more than the title of the window. */
  readonly heading?: ComponentChildren;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** One screen. Its heading takes the focus when one comes here, so that a reader hears where they are. */
export function Page({ title, heading, about, actions, children }: PageProps) {
  const path = usePath();
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Writ`;
  }, [title]);
  // Another path is another screen, also of the same kind.
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement?.tagName === 'A') head.current?.focus();
  }, [path]);
  return (
    <main id="main">
      <header class="page-head">
        <div>
          <h1 ref={head} tabIndex={-1}>
            {heading ?? title}
          </h1>
          {about !== undefined && <p class="about">{about}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

interface PanelProps {
  readonly title: string;
  readonly count?: number | string | undefined;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A part of a screen, with a heading. */
export function Panel({ title, count, about, actions, class: name = '', children }: PanelProps) {
  const id = useId();
  return (
    <section class={`panel ${name}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>
          {title}
          {count !== undefined && <span class="count">{count}</span>}
        </h2>
        {about !== undefined && <p class="about">{about}</p>}
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

/** Where there is nothing: said, and why that is good or what comes here. */
export function Nothing({ children }: { readonly children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

/** Pairs of a name and what it is. */
export function Facts({ children }: { readonly children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

interface FactProps {
  readonly name: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

export function Fact({ name, wide = false, children }: FactProps) {
  return (
    <div class={wide ? 'wide' : ''}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
