import { type NamedHost, nameOfBucket, nameOfHost, shortKey, visible } from "../format.ts";
import { addressOf } from "../router.ts";

/**
 * The name of a host as a link to its page. `bdi` prevents the name from changing the direction of the text around it.
 */
export function HostLink({ host, hostname }: NamedHost) {
  const label = nameOfHost({ host, hostname });
  return (
    <a class="name" href={addressOf({ name: "host", key: host })} title={label}>
      <bdi class={hostname === undefined ? "key" : undefined}>{label}</bdi>
    </a>
  );
}

/** The host a dialog is about. */
export function HostName({ host }: { host: NamedHost }) {
  return (
    <p class="wrap">
      <bdi>
        <b>{nameOfHost(host)}</b>
      </bdi>
    </p>
  );
}

export function BucketName({ bucket }: { bucket: string }) {
  const label = nameOfBucket(bucket);
  return (
    <bdi class={bucket === "" ? "name quiet" : "name"} title={label}>
      {label}
    </bdi>
  );
}

/** An id that only distinguishes things: the beginning is shown, and the tooltip has the whole. */
export function ShortId({ id }: { id: string }) {
  return (
    <bdi class="key" title={visible(id)}>
      {visible(shortKey(id))}
    </bdi>
  );
}
