import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "./notice.tsx";

interface ConfirmDialogProps {
  readonly title: string;
  /** What the button does, as a verb: "Revoke the slot". */
  readonly verb: string;
  readonly isDangerous?: boolean;
  readonly done: string;
  readonly children: ComponentChildren;
  readonly act: () => Promise<void>;
  /** Called after the action, to show what it has changed. */
  readonly refresh: () => void;
  readonly close: () => void;
}

/** Asks for confirmation, shows why the service refused, and reports success. The browser keeps the focus inside. */
export function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, verb, isDangerous = false, done, children, act, refresh, close } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setIsBusy(true);
    try {
      await act();
      refresh();
      announce(done);
      close();
    } catch (error) {
      setProblem((error as Error).message);
      setIsBusy(false);
    }
  };
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="dialog-title" onClose={close}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="dialog-title">{title}</h2>
        <div class="dialog-text">{children}</div>
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={isBusy}>
            {isBusy ? "Working…" : verb}
          </button>
        </div>
      </form>
    </dialog>
  );
}
