import { useRef, useState } from "preact/hooks";
import { act } from "../../api/call.ts";
import { count, duration, nameOfBucket, plural, seconds, timeOfDay, visible } from "../../format.ts";
import { CellPlaces } from "../../model/cell-places.ts";
import type { HostState, HostView, SessionState, SlotState } from "../../model/host-watch.ts";
import { Bar } from "../../ui/bar.tsx";
import { Card } from "../../ui/card.tsx";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { BucketName } from "../../ui/name.tsx";

/** More cells are not readable; the numbers show the rest. */
const MOST_CELLS = 120;

interface SlotCellsProps {
  readonly view: HostView;
  readonly host: HostState;
  /** The session whose wait is explained below. */
  readonly session: SessionState | undefined;
  readonly refresh: () => void;
}

/** The slots of the host as cells, one for each grant and each free slot: holder, time of the hold, rest of the lease. */
export function SlotCells({ view, host, session, refresh }: SlotCellsProps) {
  const [revoked, setRevoked] = useState<SlotState | undefined>();
  const { slots, limit = 0, inFlight } = host;
  const places = useRef(new CellPlaces());
  // The state does not contain the length of a lease, so the longest remaining time seen here is used.
  const lease = useRef(0);
  lease.current = Math.max(lease.current, ...slots.map(({ endsInMs }) => endsInMs));
  const free = Math.max(0, limit - inFlight);
  const grants = limit - slots.reduce((more, { width }) => more + width - 1, 0);
  const cells = places.current.arrange(slots, Math.min(grants, Math.max(MOST_CELLS, slots.length)));
  const hidden = Math.max(grants, cells.length) - Math.min(cells.length, MOST_CELLS);
  return (
    <Card name="slots" title="Slots" note={`${count(inFlight)} of ${count(limit)} in use, ${count(free)} free`}>
      <ul class="cells">
        {cells.slice(0, MOST_CELLS).map((slot, index) =>
          slot === undefined ? (
            <li key={index} class="cell cell-free">
              free
            </li>
          ) : (
            <Cell
              key={index}
              number={index + 1}
              slot={slot}
              at={view.at}
              isAwaited={isAwaited(slot, session)}
              leaseMs={lease.current}
              onRevoke={() => setRevoked(slot)}
            />
          ),
        )}
      </ul>
      {hidden > 0 ? <p class="quiet">And {plural(hidden, "slot")} more.</p> : null}
      {revoked === undefined ? null : <Revoke slot={revoked} refresh={refresh} close={() => setRevoked(undefined)} />}
    </Card>
  );
}

/** Whether the session waits for this slot in particular, because its own bucket or class holds it. */
function isAwaited(slot: SlotState, session: SessionState | undefined): boolean {
  if (session?.isAwake !== true) return false;
  if (session.blockedBy === "class") return slot.class === session.class;
  return session.blockedBy === "ip-limit" && slot.bucket === session.bucket;
}

interface CellProps {
  readonly number: number;
  readonly slot: SlotState;
  /** The time of the service. */
  readonly at: number;
  readonly isAwaited: boolean;
  readonly leaseMs: number;
  readonly onRevoke: () => void;
}

function Cell({ number, slot, at, isAwaited, leaseMs, onRevoke }: CellProps) {
  const { bucket, width, class: ofClass, heldMs, endsInMs, isReleased, isProbe } = slot;
  const left = leaseMs <= 0 ? 0 : Math.max(0, endsInMs / leaseMs);
  return (
    <li class="cell" data-ending={!isReleased && endsInMs < 5_000} data-awaited={isAwaited}>
      <p class="cell-holder">
        <BucketName bucket={bucket} />
        {ofClass === undefined ? null : <span class="badge quiet">{ofClass}</span>}
        {width > 1 ? <span class="badge quiet">{plural(width, "slot")}</span> : null}
        {isProbe ? <span class="badge breaker-testing">trial</span> : null}
        {isAwaited ? (
          <span class="badge load-queueing" title="The session below waits for a slot of its own bucket or class">
            awaited
          </span>
        ) : null}
      </p>
      <p class="cell-times">
        <span title={heldMs === undefined ? "" : `since ${timeOfDay(at - heldMs)}`}>
          held {heldMs === undefined ? "–" : duration(heldMs)}
        </span>
        <span>{isReleased ? `frees in ${duration(endsInMs)}` : leaseText(endsInMs)}</span>
      </p>
      <Bar share={left} />
      <button
        type="button"
        class="small"
        onClick={onRevoke}
        aria-label={`Revoke the slot of ${nameOfBucket(bucket)}, cell ${number}`}
      >
        Revoke…
      </button>
    </li>
  );
}

const YEAR_MS = 365 * 86_400_000;

/** A slot of the keeper of one machine ends with its command, not by time. */
function leaseText(endsInMs: number): string {
  return endsInMs > YEAR_MS ? "no time limit" : `lease ${seconds(endsInMs)}`;
}

function Revoke({ slot, refresh, close }: { slot: SlotState; refresh: () => void; close: () => void }) {
  return (
    <ConfirmDialog
      title="Revoke this slot?"
      verb="Revoke the slot"
      isDangerous
      done="The slot was revoked."
      act={() => act("DELETE", `/slots/${encodeURIComponent(slot.slot)}`)}
      refresh={refresh}
      close={close}
    >
      <dl class="facts">
        <dt>Bucket</dt>
        <dd>
          <BucketName bucket={slot.bucket} />
        </dd>
        <dt>Session</dt>
        <dd class="key wrap">{visible(slot.session)}</dd>
        <dt>Held for</dt>
        <dd>{slot.heldMs === undefined ? "unknown" : duration(slot.heldMs)}</dd>
      </dl>
      <p>
        The next waiter gets the slot at once. The holder learns of it when it renews; a request it has already sent to
        the host is not stopped, so for a moment more requests than slots may run.
      </p>
    </ConfirmDialog>
  );
}
