import { type ConfigSources, type Diagnosis, diagnose } from "@slotkeeper/server";

/** A valid set-up: reachable from this machine only, with fewer connections than any machine allows. */
const SOUND = { listen: "127.0.0.1:0", limits: { connections: 100 } };

/** The doctor's report about a configuration that is given as flags. */
export function diagnosisOf(config: object, sources: ConfigSources = {}): Promise<Diagnosis> {
  return diagnose({ ...sources, flags: { ...SOUND, ...config } });
}

/** All warnings and problems, as `severity code`. */
export function reported({ findings }: Diagnosis): string[] {
  return findings.filter(({ severity }) => severity !== "ok").map(({ severity, code }) => `${severity} ${code}`);
}

/** The one finding with this code; its parts are never empty. */
export function finding(diagnosis: Diagnosis, code: string) {
  const [one, ...more] = diagnosis.findings.filter((candidate) => candidate.code === code);
  if (one === undefined || more.length > 0) throw new Error(`expected one ${code}, got ${JSON.stringify(diagnosis)}`);
  const { check, severity, found, why = "", fix = "" } = one;
  if (found === "" || why === "" || fix === "") throw new Error(`${code} does not say everything`);
  return { check, severity, found, why, fix };
}
