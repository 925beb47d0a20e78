import { useState } from "preact/hooks";
import { act } from "../../api/call.ts";
import { count, visible } from "../../format.ts";
import type { HostState } from "../../model/host-watch.ts";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { HostName } from "../../ui/name.tsx";
import { type HostDialogProps, LimitsDialog } from "./limits-dialog.tsx";

type Open = "none" | "limits" | "open" | "close" | "pause";

/** The actions of an operator on a host. Each asks for confirmation. */
export function HostActions({ host, refresh }: { host: HostState; refresh: () => void }) {
  const [open, setOpen] = useState<Open>("none");
  const close = () => setOpen("none");
  const isSemaphore = host.limits.maxSlotPerHost.origin === "semaphore";
  return (
    <div class="actions">
      <Limits host={host} />
      <div class="buttons">
        {isSemaphore ? null : (
          <button type="button" onClick={() => setOpen("limits")}>
            Change limits…
          </button>
        )}
        {host.breaker === "closed" ? null : (
          <button type="button" onClick={() => setOpen("close")}>
            Close the breaker…
          </button>
        )}
        {host.breaker === "open" ? null : (
          <button type="button" onClick={() => setOpen("open")}>
            Open the breaker…
          </button>
        )}
        <button type="button" onClick={() => setOpen("pause")}>
          {host.isPaused ? "Let it go on…" : "Pause…"}
        </button>
      </div>
      {open === "pause" ? <PauseDialog host={host} refresh={refresh} close={close} /> : null}
      {open === "limits" ? <LimitsDialog host={host} refresh={refresh} close={close} /> : null}
      {open === "open" || open === "close" ? (
        <BreakerDialog host={host} isOpening={open === "open"} refresh={refresh} close={close} />
      ) : null}
    </div>
  );
}

function Limits({ host: { limits } }: { host: HostState }) {
  const { maxSlotPerHost, maxSlotPerIp } = limits;
  return (
    <p class="limits">
      Limit <b>{maxSlotPerHost.value === 0 ? "?" : count(maxSlotPerHost.value)}</b> per host{" "}
      <Origin of={maxSlotPerHost.origin} />, <b>{maxSlotPerIp.value === 0 ? "no limit" : count(maxSlotPerIp.value)}</b>{" "}
      per bucket <Origin of={maxSlotPerIp.origin} />
    </p>
  );
}

function Origin({ of }: { of: string }) {
  const words: { readonly [origin: string]: string } = { live: "set live", semaphore: "set by its users" };
  return <span class="quiet">({words[of] ?? visible(of)})</span>;
}

function PauseDialog({ host, refresh, close }: HostDialogProps) {
  const { isPaused } = host;
  return (
    <ConfirmDialog
      title={isPaused ? "Let this host go on?" : "Pause this host?"}
      verb={isPaused ? "Let it go on" : "Pause"}
      isDangerous={!isPaused}
      done={isPaused ? "The host grants slots again." : "The host is paused."}
      act={() => act("POST", `/hosts/${encodeURIComponent(host.host)}/pause?by=key`, { paused: !isPaused })}
      refresh={refresh}
      close={close}
    >
      <HostName host={host} />
      <p>
        {isPaused
          ? "Waiting requests get the free slots at once, in the whole fleet."
          : "Nothing new is granted at this host, in the whole fleet, until an operator lets it go on. Slots already granted stay with their holders. Requests wait, and time out as usual."}
      </p>
    </ConfirmDialog>
  );
}

function BreakerDialog({ host, isOpening, refresh, close }: HostDialogProps & { readonly isOpening: boolean }) {
  const verb = isOpening ? "Open the breaker" : "Close the breaker";
  const path = `/hosts/${encodeURIComponent(host.host)}/breaker?by=key`;
  return (
    <ConfirmDialog
      title={`${verb} of this host?`}
      verb={verb}
      isDangerous={isOpening}
      done={isOpening ? "The breaker is open." : "The breaker is closed."}
      act={() => act("POST", path, { state: isOpening ? "open" : "closed" })}
      refresh={refresh}
      close={close}
    >
      <HostName host={host} />
      <p>
        {isOpening
          ? "All new and waiting requests for this host end as throttled, in the whole fleet. After the time set in breaker.openSeconds, single requests are let through again. Slots already granted stay with their holders."
          : "Requests go to the host again at once, in the whole fleet. If the host still fails, the breaker opens by itself."}
      </p>
    </ConfirmDialog>
  );
}
