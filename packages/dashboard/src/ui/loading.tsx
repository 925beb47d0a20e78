/** Shown until a page is loaded. Every page has one main heading, so this is one. */
export function Loading({ text }: { text: string }) {
  return (
    <div class="loading" role="status">
      <h1>{text}</h1>
    </div>
  );
}
