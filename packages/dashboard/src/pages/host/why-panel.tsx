import { count, duration } from "../../format.ts";
import { now } from "../../model/clock.ts";
import type { HostState, HostView, SessionState } from "../../model/host-watch.ts";
import { waitingAt } from "../../model/load.ts";
import { whyWaits } from "../../model/why.ts";
import { Card } from "../../ui/card.tsx";
import { BucketName, ShortId } from "../../ui/name.tsx";

interface WhyPanelProps {
  readonly session: SessionState;
  /** Whether a person selected it; otherwise it is the first in the queue. */
  readonly isChosen: boolean;
  readonly host: HostState;
  readonly view: HostView;
}

/** Why one session waits: the limit and the estimate. The cells above show the holders. */
export function WhyPanel({ session, isChosen, host, view }: WhyPanelProps) {
  const why = whyWaits(session, { host, sinceMs: now.value - view.seenAt });
  return (
    <Card
      name="why"
      looks="why"
      title={`Why does ${isChosen ? "this session" : "the first in the queue"} wait?`}
      note={
        <>
          Session <ShortId id={session.session} /> of <BucketName bucket={session.bucket} />
        </>
      }
    >
      <p class="why-cause">{why.cause}</p>
      <p>{why.more}</p>
      <dl class="facts facts-row">
        <div>
          <dt>Position</dt>
          <dd>
            {count(session.position)} of {count(waitingAt(host))}
          </dd>
        </div>
        <div>
          <dt>Waiting for</dt>
          <dd>{duration(Math.max(0, view.at - session.arrivedAt))}</dd>
        </div>
        <div>
          <dt>Forecast</dt>
          <dd>{why.forecast}</dd>
        </div>
      </dl>
    </Card>
  );
}
