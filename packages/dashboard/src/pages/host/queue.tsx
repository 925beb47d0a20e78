import { blockedByWords } from "@slotkeeper/protocol";
import { count, duration, plural } from "../../format.ts";
import { forecastMs } from "../../model/forecast.ts";
import type { HostState, HostView, HostWatch, SessionState } from "../../model/host-watch.ts";
import { Card } from "../../ui/card.tsx";
import { BucketName } from "../../ui/name.tsx";
import { isNarrow } from "../../ui/narrow.ts";
import { type Column, VirtualRows } from "../../ui/virtual-rows.tsx";

interface QueueProps {
  readonly watch: HostWatch;
  readonly view: HostView;
  readonly host: HostState;
  readonly chosen: string | undefined;
  readonly onChoose: (session: string) => void;
}

/** All sessions that wait at this instance, in the order of the queue. A selected row shows why its session waits. */
export function Queue(props: QueueProps) {
  const { watch, view, host } = props;
  const { sessions, pending } = host;
  return (
    <Card
      name="queue"
      looks="rows-card queue"
      title="Waiting sessions"
      note={
        pending === 0
          ? "No session waits at this instance."
          : `${count(pending)} at this instance, next first. Pick one to see why it waits.`
      }
    >
      {pending === 0 ? null : (
        <VirtualRows
          label="Waiting sessions"
          count={pending}
          rowHeight={isNarrow.value ? 62 : 40}
          onShown={(first, last) => watch.show(first, last)}
          columns={columnsOf(props)}
          row={(index) => sessions[index - view.from]}
        />
      )}
    </Card>
  );
}

function columnsOf({ host, view, chosen, onChoose }: QueueProps): Column<SessionState>[] {
  return [
    {
      title: "Position",
      class: "cell-position",
      cell: ({ session, position }) => (
        <button
          type="button"
          class="small"
          aria-pressed={session === chosen}
          aria-label={`Why does the session at position ${position} wait?`}
          onClick={() => onChoose(session)}
        >
          {count(position)}
        </button>
      ),
    },
    { title: "Bucket", class: "cell-name", cell: (session) => <Name session={session} /> },
    {
      title: "Waiting for",
      class: "cell-number",
      cell: ({ arrivedAt }) => duration(Math.max(0, view.at - arrivedAt)),
    },
    {
      title: "Forecast",
      class: "cell-number cell-extra",
      cell: (session) => {
        const forecast = forecastMs(session, host);
        return forecast === undefined ? "–" : duration(forecast);
      },
    },
    {
      title: "Why",
      class: "cell-blocked",
      cell: ({ isAwake, blockedBy }) => (isAwake ? (blockedByWords(blockedBy) ?? "next") : "client is away"),
    },
  ];
}

function Name({ session: { bucket, class: ofClass, width } }: { session: SessionState }) {
  return (
    <>
      <BucketName bucket={bucket} /> {ofClass === undefined ? null : <span class="badge quiet">{ofClass}</span>}{" "}
      {width > 1 ? <span class="badge quiet">{plural(width, "slot")}</span> : null}
    </>
  );
}
