import type { InstanceView } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import { limitsHash } from "../telemetry/about.ts";
import { distinctOf } from "../telemetry/presence.ts";
import { VERSION } from "../version.ts";
import { type Finding, ok, warningIf } from "./finding.ts";

/**
 * Checks whether all live instances have the same version and limits, and whether this configuration has these limits.
 */
export function instanceFindings(views: readonly InstanceView[], { settings }: LoadedConfig): Finding[] {
  if (views.length === 0) return [ok("instances", "No instance is running.")];
  const findings = [...versionDrift(views), ...limitsDrift(views), ...notLoaded(views, limitsHash(settings.fairQueue))];
  if (findings.length > 0) return findings;
  const many = views.length === 1 ? "1 runs" : `${views.length} run`;
  return [ok("instances", `${many}, version ${VERSION}, with the limits of this configuration.`)];
}

function versionDrift(views: readonly InstanceView[]): Finding[] {
  const versions = distinctOf(views, "version");
  const isSame = versions.length === 1 && versions[0] === VERSION;
  return warningIf(!isSame, "instances", {
    code: "VERSION_DRIFT",
    found: `The running instances and this command have different versions: ${listed(views, "version")}; this command is ${VERSION}.`,
    why: "Every call carries the schema number of its version. After a migration, instances of the older version grant nothing.",
    fix: "Restart the instances with one version. docs/guides/production.md has the order of an upgrade.",
  });
}

function limitsDrift(views: readonly InstanceView[]): Finding[] {
  return warningIf(distinctOf(views, "configHash").length > 1, "instances", {
    code: "LIMITS_DRIFT",
    found: `The running instances have different limits: ${listed(views, "configHash")}.`,
    why: "The limits of a host are those of the instance that loaded its configuration last, so they change with every restart or refresh.",
    fix: "Give all instances the same `fairQueue`, then send each a SIGHUP or POST /api/v0/refresh.",
  });
}

/** Only if all instances have the same limits; otherwise `LIMITS_DRIFT` reports it. */
function notLoaded(views: readonly InstanceView[], own: string): Finding[] {
  const hashes = distinctOf(views, "configHash");
  return warningIf(hashes.length === 1 && hashes[0] !== own, "instances", {
    code: "LIMITS_NOT_LOADED",
    found: `The running instances have other limits (${String(hashes[0])}) than this configuration (${own}).`,
    why: "The file was changed after they loaded it, or it is not the file that they use.",
    fix: "Send each instance a SIGHUP or POST /api/v0/refresh, or check which file they use.",
  });
}

function listed(views: readonly InstanceView[], field: string): string {
  return views.map(({ instance, about }) => `${instance} ${String(about[field])}`).join(", ");
}
