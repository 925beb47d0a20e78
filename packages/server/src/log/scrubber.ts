/**
 * The last defence: it removes tokens and keys from everything that is written. The code does not log secrets; this
 * catches those in the message of an error, a stack, or a requested path.
 *
 * A short secret may be a part of any word, or a word of our own sentences. So it is removed only from values that came
 * from elsewhere, and only where it is not a part of a longer word.
 */
export class Scrubber {
  #long: readonly string[] = [];
  #short: readonly RegExp[] = [];
  readonly #known = new Set<string>();

  /** Adds the secrets of a configuration. Those of an earlier configuration stay secret. */
  learn(secrets: Iterable<string>): void {
    for (const secret of secrets)
      if (secret !== "") for (const spelling of spellingsOf(secret)) this.#known.add(spelling);
    // The longest first, because one secret may be part of another.
    const spelled = [...this.#known].sort((a, b) => b.length - a.length);
    this.#long = spelled.filter((secret) => secret.length >= LONG);
    this.#short = spelled.filter((secret) => secret.length < LONG).map(asWord);
  }

  /** For a text that may quote what others sent. */
  scrub(text: string): string {
    let clean = this.scrubSentence(text);
    for (const secret of this.#short) clean = clean.replaceAll(secret, REDACTED);
    return clean;
  }

  /** For a sentence of our own: it contains no secret, unless by a mistake. */
  scrubSentence(text: string): string {
    let clean = text.replaceAll(TOKENS, REDACTED);
    for (const secret of this.#long) clean = clean.replaceAll(secret, REDACTED);
    return clean;
  }

  /** The same for all texts in a value. Names of fields are ours. */
  scrubValue(value: unknown): unknown {
    if (typeof value === "string") return this.scrub(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.scrubValue(item));
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, this.scrubValue(item)]));
  }
}

/** No word of ours has this length. It is also the length below which a key gets a warning. */
const LONG = 16;

/** The secret as it is, inside JSON, and inside an address. */
function spellingsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

function asWord(secret: string): RegExp {
  const [before, after] = [/^[\w-]/.test(secret) ? "(?<![\\w-])" : "", /[\w-]$/.test(secret) ? "(?![\\w-])" : ""];
  return new RegExp(`${before}${secret.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&")}${after}`, "g");
}

const REDACTED = "[redacted]";
/**
 * Matches the tokens of `queue/names.ts` and slot tokens: `slot_<host key>.<secret>`. A caller chooses the host key,
 * so it may contain anything except control characters. The text may be JSON, in which a quote of the key is escaped.
 */
const TOKENS = /\b(?:fq1\.[\w-]+\.[\w-]+(?:\.[\w-]+)?|slot_(?:(?:[^"\\\n]|\\.){1,256}\.[\w-]{16,}|[\w-]{16,}))/g;
