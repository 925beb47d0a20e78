import { useRef, useState } from "preact/hooks";
import { hosts } from "../model/fleet.ts";
import { CopyBox } from "../ui/copy-box.tsx";
import { HostLink } from "../ui/name.tsx";

const BODY = `{"hostname":"example.com","bucket":"me","waitMs":1000}`;

/** Shows a new user how to send the first request, and that it has arrived. */
export function FirstRequest({ created }: { created: number }) {
  const wasEmpty = useRef(false);
  const [isDismissed, setIsDismissed] = useState(false);
  const isEmpty = created === 0 && hosts.value.size === 0;
  if (isEmpty) wasEmpty.current = true;
  if (isEmpty) return <HowTo />;
  const [first] = hosts.value.values();
  if (!wasEmpty.current || isDismissed || first === undefined) return null;
  return (
    <section class="banner good" role="status">
      <p>
        The first request arrived: it asked for a slot of <HostLink host={first.host} hostname={first.hostname} />. Its
        page shows who holds the slot and for how long.
      </p>
      <button type="button" onClick={() => setIsDismissed(true)}>
        Close
      </button>
    </section>
  );
}

function HowTo() {
  const command = `curl -sS ${location.origin}/api/v0/fairqueue/acquire -d '${BODY}'`;
  return (
    <section class="card empty" aria-labelledby="empty-title">
      <h2 id="empty-title">No slot has been requested yet</h2>
      <p>
        Slotkeeper limits how many requests run at the same time against a host. Ask for a slot of{" "}
        <code>example.com</code> from a terminal:
      </p>
      <CopyBox text={command} label="first request" />
      <p class="quiet">
        If the service has a shared key, add <code>-H 'X-FQ-Auth: …'</code>. The answer is{" "}
        <code>"result":"granted"</code> with a slot that lasts 30 seconds unless it is renewed or released.
      </p>
      <p class="listening" role="status">
        <i class="pulse" aria-hidden="true" /> Waiting for the first request. It appears here within a second.
      </p>
    </section>
  );
}
