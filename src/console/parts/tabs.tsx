import { useRef } from 'preact/hooks';

interface TabsProps<T extends string> {
  readonly label: string;
  readonly tabs: readonly (readonly [T, string])[];
  readonly chosen: T;
  readonly onChoose: (tab: T) => void;
}

/** One of a few views. Arrow keys go from one to the next, as a group of radio buttons does it. */
export function Tabs<T extends string>({ label, tabs, chosen, onChoose }: TabsProps<T>) {
  const group = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = tabs.findIndex(([tab]) => tab === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onChoose(next[0]);
    group.current?.querySelectorAll('button')[(at + step + tabs.length) % tabs.length]?.focus();
  };
  return (
    <div class="tabs" role="radiogroup" aria-label={label} ref={group} onKeyDown={move}>
      {tabs.map(([tab, words]) => (
        // biome-ignore lint/a11y/useSemanticElements: one of a few views is chosen, nothing is sent.
        <button
          key={tab}
          type="button"
          role="radio"
          aria-checked={tab === chosen}
          tabIndex={tab === chosen ? 0 : -1}
          onClick={() => onChoose(tab)}
        >
          {words}
        </button>
      ))}
    </div>
  );
}
