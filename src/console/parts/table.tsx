import type { ComponentChildren } from 'preact';

/** A column: its name, and what a row has there. */
export interface Column<T> {
  readonly name: string;
  /** What is in it says itself what it is. */
  readonly unnamed?: boolean;
  /** As narrow as what is in it; numbers stand at their end. */
  readonly fit?: 'tight' | 'number';
  readonly cell: (row: T) => ComponentChildren;
}

interface TableProps<T> {
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T, index: number) => string;
}

/** Rows and columns; where there is no room for columns, a row's cells stand below each other, each with its name. */
export function Table<T>({ columns, rows, keyOf }: TableProps<T>) {
  return (
    <table class="rows">
      <thead>
        <tr>
          {columns.map(({ name, unnamed, fit = '' }) => (
            <th key={name} scope="col" class={fit}>
              {unnamed === true ? <span class="unseen">{name}</span> : name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={keyOf(row, index)}>
            {columns.map(({ name, unnamed, fit = '', cell }) => (
              <td key={name} class={fit} data-name={unnamed === true ? '' : name}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
