import { useState } from "preact/hooks";

/** A command to copy. If the browser refuses access to the clipboard, the text can be selected. */
export function CopyBox({ text, label }: { text: string; label: string }) {
  const [state, setState] = useState("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("Copied");
    } catch {
      setState("Select and copy");
    }
    setTimeout(() => setState("Copy"), 3_000);
  };
  return (
    <div class="copy-box">
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
      <button type="button" onClick={() => void copy()} aria-label={`${state}: ${label}`}>
        {state}
      </button>
    </div>
  );
}
