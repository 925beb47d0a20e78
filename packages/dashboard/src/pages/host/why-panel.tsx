import { waitCause } from "@slotkeeper/protocol";
import { count, duration, nameOfBucket, seconds } from "../../format.ts";
import { now } from "../../model/clock.ts";
import { forecastWords } from "../../model/forecast.ts";
import type { HostState, HostView, SessionState } from "../../model/host-watch.ts";
import { breakerLeft, waitingAt } from "../../model/load.ts";
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
  // The countdown continues between two answers.
  const left = seconds(breakerLeft(host, view.seenAt, now.value));
  const { cause, more } = waitCause(session, host, { bucket: nameOfBucket(session.bucket), breakerLeft: left });
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
      <p class="why-cause">{cause}</p>
      <p>{more}</p>
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
          <dd>{forecastWords(session, host)}</dd>
        </div>
      </dl>
    </Card>
  );
}
