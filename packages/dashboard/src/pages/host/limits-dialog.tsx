import { useState } from "preact/hooks";
import { act } from "../../api/call.ts";
import type { HostState } from "../../model/host-watch.ts";
import { ConfirmDialog } from "../../ui/confirm-dialog.tsx";
import { HostName } from "../../ui/name.tsx";

export interface HostDialogProps {
  readonly host: HostState;
  readonly refresh: () => void;
  readonly close: () => void;
}

/** An empty field means "as configured": the service takes the whole set of live limits in one call. */
export function LimitsDialog({ host, refresh, close }: HostDialogProps) {
  const { maxSlotPerHost, maxSlotPerIp } = host.limits;
  const [perHost, setPerHost] = useState(liveText(maxSlotPerHost));
  const [perBucket, setPerBucket] = useState(liveText(maxSlotPerIp));
  const change = () => {
    const body = {
      ...(perHost === "" ? {} : { maxSlotPerHost: Number(perHost) }),
      ...(perBucket === "" ? {} : { maxSlotPerIp: Number(perBucket) }),
    };
    return act("POST", `/hosts/${encodeURIComponent(host.host)}?by=key`, body);
  };
  return (
    <ConfirmDialog
      title="Change the limits of this host"
      verb="Apply in the whole fleet"
      done="The limits were changed."
      act={change}
      refresh={refresh}
      close={close}
    >
      <HostName host={host} />
      <Field label="Slots of this host" value={perHost} least={1} limit={maxSlotPerHost} onText={setPerHost} />
      <Field
        label="Slots of one bucket (0: no limit)"
        value={perBucket}
        least={0}
        limit={maxSlotPerIp}
        onText={setPerBucket}
      />
      <p class="quiet">
        Applies at once and stays after a restart, until it is changed again. Leave a field empty to use the configured
        value. Slots above a lowered limit stay with their holders until they are released.
      </p>
    </ConfirmDialog>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly least: number;
  readonly limit: { readonly value: number; readonly origin: string };
  readonly onText: (text: string) => void;
}

function Field({ label, value, least, limit, onText }: FieldProps) {
  return (
    <label class="field">
      {label}
      <input
        type="number"
        inputmode="numeric"
        min={least}
        max={1_000_000}
        step={1}
        value={value}
        placeholder={limit.origin === "live" ? "as configured" : `as configured: ${limit.value}`}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    </label>
  );
}

function liveText({ value, origin }: FieldProps["limit"]): string {
  return origin === "live" ? String(value) : "";
}
