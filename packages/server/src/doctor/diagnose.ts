import { ADVICE_CODES } from "../config/advice.ts";
import { effectiveConfig } from "../config/config-source.ts";
import { ConfigError } from "../config/errors.ts";
import type { ConfigSources, LoadedConfig } from "../config/load-config.ts";
import { secretsOf } from "../config/print-config.ts";
import type { Backend } from "../config/settings.ts";
import { Scrubber } from "../log/scrubber.ts";
import { VERSION } from "../version.ts";
import { configFindings } from "./check-config.ts";
import { databaseFindings } from "./check-database.ts";
import { journalFindings } from "./check-journal.ts";
import { postgrestFindings } from "./check-postgrest.ts";
import { serviceFindings } from "./check-service.ts";
import { CHECKS, type Check, type Finding, problem, SEVERITIES, type Severity } from "./finding.ts";

/** What `slotkeeper doctor --json` prints. */
export interface Diagnosis {
  readonly version: string;
  /**
   * The version of the configuration: `file:config.json` or `default`, or the version of the controller if it answered.
   */
  readonly config: string;
  /** `undefined` if the configuration cannot be read. */
  readonly store: Backend["mode"] | undefined;
  /** The severity of the worst finding. */
  readonly severity: Severity;
  /** All findings, in the order of the checks. */
  readonly findings: readonly Finding[];
  /** Checks that were skipped, because they need something that an earlier check did not find. */
  readonly skipped: readonly Check[];
}

/**
 * Finds out why a service with this configuration does not work, or would not work, and how to fix it.
 *
 * DOCTOR1  It changes nothing: it only reads the database, and only tests whether the folder of a journal can be
 *     written, and whether the port can be used if nothing listens there.
 * DOCTOR2  It works while a service is running.
 * DOCTOR3  No text contains a secret.
 * DOCTOR4  Every failure is a finding: it does not throw.
 *
 * @example
 * ```ts
 * import { diagnose } from "@slotkeeper/server";
 *
 * const { severity, findings } = await diagnose({ file: "config.json", environment: process.env });
 * for (const { check, found, fix } of findings) console.log(severity, check, found, fix ?? "");
 * ```
 */
export async function diagnose(sources: ConfigSources): Promise<Diagnosis> {
  const scrubber = new Scrubber();
  try {
    // What `serve` would log about the control plane is a finding here.
    const config = await effectiveConfig(sources, () => {});
    scrubber.learn(secretsOf(config));
    const { mode } = config.settings.backend;
    const checks = [configFindings, serviceFindings, storeFindings].map((check) => check(config));
    const findings = (await Promise.all(checks)).flat();
    const asked = CHECKS.filter((check) => OF_STORE[check]?.includes(mode) ?? true);
    return diagnosisOf(config.version, mode, findings, asked, scrubber);
  } catch (error) {
    const findings = [...unreadable(error, sources)];
    return diagnosisOf(sources.file ?? "default", undefined, findings, CHECKS, scrubber);
  }
}

/** Checks that only make sense with some stores. */
const OF_STORE: { readonly [check in Check]?: readonly Backend["mode"][] } = {
  journal: ["memory"],
  database: ["postgres", "postgrest"],
  schema: ["postgres"],
  permissions: ["postgres"],
  notifications: ["postgres"],
  clock: ["postgres", "postgrest"],
  instances: ["postgres", "postgrest"],
};

function storeFindings(config: LoadedConfig): Promise<readonly Finding[]> {
  const { backend } = config.settings;
  if (backend.mode === "memory") return journalFindings(backend.journal, config.settings.listen);
  return backend.mode === "postgres" ? databaseFindings(backend, config) : postgrestFindings(backend, config);
}

function diagnosisOf(
  config: string,
  store: Backend["mode"] | undefined,
  found: readonly Finding[],
  asked: readonly Check[],
  scrubber: Scrubber,
): Diagnosis {
  const findings = found
    .map((finding) => scrubbed(finding, scrubber))
    .sort((a, b) => CHECKS.indexOf(a.check) - CHECKS.indexOf(b.check));
  const worst = Math.max(...findings.map(({ severity }) => SEVERITIES.indexOf(severity)));
  return {
    version: VERSION,
    config,
    store,
    severity: SEVERITIES[worst] ?? "ok",
    findings,
    skipped: asked.filter((check) => !findings.some((finding) => finding.check === check)),
  };
}

/** Advice has sentences of our own. Other findings may quote a database or a file system. */
function scrubbed({ found, why, fix, ...rest }: Finding, scrubber: Scrubber): Finding {
  const isAdvice = ADVICE_CODES.some((code) => code === rest.code);
  const scrub = (text: string) => (isAdvice ? scrubber.scrubSentence(text) : scrubber.scrub(text));
  return {
    ...rest,
    found: scrub(found),
    ...(why === undefined ? {} : { why: scrub(why) }),
    ...(fix === undefined ? {} : { fix: scrub(fix) }),
  };
}

function unreadable(error: unknown, { file }: ConfigSources): Finding[] {
  const problems = error instanceof ConfigError ? error.problems : [(error as Error).message];
  return problems.map((found) =>
    problem("configuration", {
      code: "CONFIG_INVALID",
      found: found.endsWith(".") ? found : `${found}.`,
      why: "`slotkeeper serve` refuses to start with it.",
      fix: `Correct it in ${file ?? "the environment"}. docs/reference/config.md has every key.`,
    }),
  );
}
