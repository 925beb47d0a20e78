import { signal } from "@preact/signals";

const SHOWN_MS = 6_000;
const message = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

/** Reports once that something was done, on screen and to screen readers. */
export function announce(text: string): void {
  clearTimeout(timer);
  message.value = text;
  timer = setTimeout(() => {
    message.value = "";
  }, SHOWN_MS);
}

export function Notice() {
  return (
    <div class="notice" role="status" aria-live="polite" data-empty={message.value === ""}>
      {message.value}
    </div>
  );
}
