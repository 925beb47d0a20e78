/** A column of a table made of rows: its title, and the class that gives it its width. */
export interface Column {
  readonly title: string;
  readonly class: string;
}

export function Headings({ columns }: { columns: readonly Column[] }) {
  return (
    <>
      {columns.map((column) => (
        <div key={column.title} role="columnheader" class={column.class}>
          {column.title}
        </div>
      ))}
    </>
  );
}
