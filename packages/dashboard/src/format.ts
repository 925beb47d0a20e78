/** Formats numbers, times and names for people. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const twoDigits = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

export function count(value: number): string {
  return whole.format(value);
}

export function rate(perSecond: number): string {
  return perSecond >= 100 ? count(perSecond) : (perSecond >= 10 ? oneDigit : twoDigits).format(perSecond);
}

/** `340 ms`, `2.4 s`, `45 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1) return "0 ms";
  if (ms < 999.5) return `${count(ms)} ms`;
  if (ms < 9_950) return `${oneDigit.format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return pair(days, "d", hours, "h");
  return hours > 0 ? pair(hours, "h", minutes, "min") : pair(minutes, "min", seconds % 60, "s");
}

/** At least whole seconds, for values that change once a second on screen. */
export function seconds(ms: number): string {
  return ms <= 0 ? "0 s" : duration(Math.max(1_000, Math.round(ms / 1000) * 1000));
}

export function timeOfDay(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/**
 * Makes a name from outside safe to display: control characters, marks that change the reading direction, and invisible
 * or unassigned characters are written as `\u{202e}`.
 */
export function visible(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** A host by its key, and by its name if that is known. */
export interface NamedHost {
  readonly host: string;
  readonly hostname?: string | undefined;
}

export function nameOfHost({ host, hostname }: NamedHost): string {
  return visible(hostname ?? shortKey(host));
}

export function nameOfBucket(bucket: string): string {
  return bucket === "" ? "no bucket" : visible(bucket);
}

/** The short key of a host whose name is unknown. */
export function shortKey(key: string): string {
  return key.length > 20 ? `${key.slice(0, 12)}…` : key;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
