import { blockedByWords } from "@slotkeeper/protocol";
import { count, duration, plural } from "../../format.ts";
import { forecastMs } from "../../model/forecast.ts";
import type { HostState, HostView, HostWatch, SessionState } from "../../model/host-watch.ts";
import { Headings } from "../../ui/headings.tsx";
import { BucketName } from "../../ui/name.tsx";
import { isNarrow } from "../../ui/narrow.ts";
import { VirtualRows } from "../../ui/virtual-rows.tsx";

const COLUMNS = [
  { title: "Position", class: "cell-position" },
  { title: "Bucket", class: "cell-name" },
  { title: "Waiting for", class: "cell-number" },
  { title: "Forecast", class: "cell-number cell-extra" },
  { title: "Why", class: "cell-blocked" },
];

interface QueueProps {
  readonly watch: HostWatch;
  readonly view: HostView;
  readonly host: HostState;
  readonly chosen: string | undefined;
  readonly onChoose: (session: string) => void;
}

/** All sessions that wait at this instance, in the order of the queue. A selected row shows why its session waits. */
export function Queue({ watch, view, host, chosen, onChoose }: QueueProps) {
  const { sessions, pending } = host;
  return (
    <section class="card rows-card queue" aria-labelledby="queue-title">
      <div class="card-head">
        <h2 id="queue-title">Waiting sessions</h2>
        <p class="quiet">
          {pending === 0
            ? "No session waits at this instance."
            : `${count(pending)} at this instance, next first. Pick one to see why it waits.`}
        </p>
      </div>
      {pending === 0 ? null : (
        <VirtualRows
          label="Waiting sessions"
          count={pending}
          rowHeight={isNarrow.value ? 62 : 40}
          onShown={(first, last) => watch.show(first, last)}
          header={<Headings columns={COLUMNS} />}
          row={(index) => (
            <Cells
              index={index}
              host={host}
              session={sessions[index - view.from]}
              at={view.at}
              chosen={chosen}
              onChoose={onChoose}
            />
          )}
        />
      )}
    </section>
  );
}

interface CellsProps {
  readonly index: number;
  readonly host: HostState;
  /** `undefined` while it is being loaded. */
  readonly session: SessionState | undefined;
  readonly at: number;
  readonly chosen: string | undefined;
  readonly onChoose: (session: string) => void;
}

function Cells({ index, host, session, at, chosen, onChoose }: CellsProps) {
  if (session === undefined) {
    return (
      <div role="cell" class="quiet">
        {count(index + 1)} …
      </div>
    );
  }
  const { position, bucket, width, class: ofClass, arrivedAt, blockedBy, isAwake } = session;
  const forecast = forecastMs(session, host);
  return (
    <>
      <div role="cell" class="cell-position">
        <button
          type="button"
          class="small"
          aria-pressed={session.session === chosen}
          aria-label={`Why does the session at position ${position} wait?`}
          onClick={() => onChoose(session.session)}
        >
          {count(position)}
        </button>
      </div>
      <div role="cell" class="cell-name">
        <BucketName bucket={bucket} /> {ofClass === undefined ? null : <span class="badge quiet">{ofClass}</span>}{" "}
        {width > 1 ? <span class="badge quiet">{plural(width, "slot")}</span> : null}
      </div>
      <div role="cell" class="cell-number">
        {duration(Math.max(0, at - arrivedAt))}
      </div>
      <div role="cell" class="cell-number cell-extra">
        {forecast === undefined ? "–" : duration(forecast)}
      </div>
      <div role="cell" class="cell-blocked">
        {isAwake ? (blockedByWords(blockedBy) ?? "next") : "client is away"}
      </div>
    </>
  );
}
