import { useEffect, useMemo, useState } from "preact/hooks";
import { nameOfHost, visible } from "../../format.ts";
import { type HostState, type HostView, HostWatch, type SessionState } from "../../model/host-watch.ts";
import { waitingAt } from "../../model/load.ts";
import { BreakerBadge, LoadBadge } from "../../ui/badges.tsx";
import { Loading } from "../../ui/loading.tsx";
import { GrantsTile, SlotsTile, WaitingTile, WaitsTile } from "../overview.tsx";
import { BucketShares } from "./bucket-shares.tsx";
import { Budgets } from "./budgets.tsx";
import { BusiestKeys } from "./busiest-keys.tsx";
import { Classes } from "./classes.tsx";
import { HostActions } from "./host-actions.tsx";
import { Queue } from "./queue.tsx";
import { SlotCells } from "./slot-cells.tsx";
import { WaitHistogram } from "./wait-histogram.tsx";
import { WhyPanel } from "./why-panel.tsx";

export function HostPage({ hostKey }: { hostKey: string }) {
  const watch = useMemo(() => new HostWatch(hostKey), []);
  useEffect(() => () => watch.close(), []);
  const { value: view } = watch.view;
  if (view === undefined) return <Loading text="Loading the host…" />;
  if (view.host === undefined) return <UnknownHost hostKey={hostKey} />;
  return <KnownHost watch={watch} view={view} host={view.host} />;
}

function UnknownHost({ hostKey }: { hostKey: string }) {
  return (
    <section class="card empty">
      <h1>No such host</h1>
      <p>
        The service knows no host with the key <bdi class="key wrap">{visible(hostKey)}</bdi>. A host that is not used
        is forgotten after a while, and appears again with the next request for it.
      </p>
      <p>
        <a href="#/hosts">All hosts</a>
      </p>
    </section>
  );
}

function KnownHost({ watch, view, host }: { watch: HostWatch; view: HostView; host: HostState }) {
  const [chosen, setChosen] = useState<string | undefined>();
  const session: SessionState | undefined = host.sessions.find(({ session }) => session === chosen) ?? host.sessions[0];
  const past = watch.history.value;
  return (
    <>
      <Heading watch={watch} view={view} host={host} />
      <SlotCells view={view} host={host} session={session} refresh={() => watch.refresh()} />
      <Budgets host={host} session={session} />
      <Classes host={host} session={session} />
      {session === undefined ? null : (
        <WhyPanel session={session} isChosen={session.session === chosen} host={host} view={view} />
      )}
      {past === undefined ? (
        <p class="loading tiles-space">Loading the last 15 minutes…</p>
      ) : (
        <div class="tiles tiles-four">
          <SlotsTile inFlight={host.inFlight} limit={host.limit ?? 0} past={past} note="in the whole fleet" />
          <WaitingTile waiting={waitingAt(host)} past={past} note="in the whole fleet" />
          <GrantsTile past={past} />
          <WaitsTile past={past} />
        </div>
      )}
      <BusiestKeys host={host} />
      <BucketShares host={host} />
      <Queue watch={watch} view={view} host={host} chosen={session?.session} onChoose={setChosen} />
      {past === undefined ? null : <WaitHistogram waits={past.waits} />}
    </>
  );
}

function Heading({ watch, view, host }: { watch: HostWatch; view: HostView; host: HostState }) {
  return (
    <div class="host-head">
      <div class="host-title">
        <p class="crumb">
          <a href="#/hosts">Hosts</a>
        </p>
        <h1>
          <bdi>{nameOfHost(host)}</bdi>
        </h1>
        <p class="quiet">
          <LoadBadge row={host} /> Breaker: <BreakerBadge row={host} seenAt={view.seenAt} />
          <span class="host-key">
            Key: <bdi class="key wrap">{visible(host.host)}</bdi>
          </span>
        </p>
      </div>
      <HostActions host={host} refresh={() => watch.refresh()} />
    </div>
  );
}
