import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { windowOf } from '../pure/window.js';
import './long-list.css';

interface LongListProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly rowHeight: number;
  /** Names of the columns, each with its width in the styles of the screen: `col-…`. */
  readonly columns: readonly string[];
  readonly class: string;
  /** The cells of a row. */
  readonly children: (row: T) => ComponentChildren;
}

/** A table of any length: rows that are not seen are not on the page, and two empty ones stand in for them. */
export function LongList<T>({ label, rows, keyOf, rowHeight, columns, class: name, children }: LongListProps<T>) {
  const frame = useRef<HTMLElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const look = () => setSeen({ top: element.scrollTop, height: element.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  const { from, to } = windowOf(seen.top, seen.height, rowHeight, rows.length);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it by keys.
    <section class="long-list" aria-label={label} tabIndex={0} ref={frame}>
      <table class={name} aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <th key={column} scope="col" class={`col-${column.toLowerCase()}`}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={from} rowHeight={rowHeight} columns={columns.length} />
          {rows.slice(from, to).map((row, index) => (
            <tr key={keyOf(row)} aria-rowindex={from + index + 2} style={{ height: `${rowHeight}px` }}>
              {children(row)}
            </tr>
          ))}
          <Gap rows={rows.length - to} rowHeight={rowHeight} columns={columns.length} />
        </tbody>
      </table>
    </section>
  );
}

/** The room of rows that are not on the page. */
function Gap({
  rows,
  rowHeight,
  columns,
}: {
  readonly rows: number;
  readonly rowHeight: number;
  readonly columns: number;
}) {
  if (rows === 0) return null;
  return (
    <tr class="gap">
      <td colSpan={columns} style={{ height: `${rows * rowHeight}px` }} />
    </tr>
  );
}
