import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "../model/connection.ts";

/** Asks for the internal token. It stays in the memory of this page. */
export function SignIn({ wasTokenTried }: { wasTokenTried: boolean }) {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), [wasTokenTried]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text !== "") signIn(text);
  };
  return (
    <section class="card sign-in">
      <h1>Internal token</h1>
      <form onSubmit={submit}>
        <label for="token">
          Enter the value of <code>internalApiToken</code> from the service's configuration.
        </label>
        <div class="sign-in-row">
          <input
            ref={input}
            id="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={text}
            aria-describedby="token-problem token-help"
            aria-invalid={wasTokenTried}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={text === ""}>
            Show the dashboard
          </button>
        </div>
        <p id="token-problem" class="problem" role="alert">
          {wasTokenTried ? "The service did not accept this token." : ""}
        </p>
      </form>
      <p id="token-help" class="quiet">
        The token stays in this page's memory: a reload asks for it again. If the service has no token, its data is
        shown only to a browser on the same machine that opens it as <code>localhost</code> or <code>127.0.0.1</code>,
        without a proxy in between.
      </p>
    </section>
  );
}
