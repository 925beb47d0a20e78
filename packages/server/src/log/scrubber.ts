/**
 * The last defence: it removes tokens and keys from everything that is written. The code does not log secrets; this
 * catches those in the message of an error, a stack, or a requested path.
 */
export class Scrubber {
  #spellings: readonly string[] = [];

  /** Adds the secrets of a configuration. Those of an earlier configuration stay secret. */
  learn(secrets: Iterable<string>): void {
    const spelled = [...secrets].filter((secret) => secret !== "").flatMap(spellingsOf);
    // The longest first, because one secret may be part of another.
    this.#spellings = [...new Set([...this.#spellings, ...spelled])].sort((a, b) => b.length - a.length);
  }

  scrub(text: string): string {
    let clean = text.replaceAll(TOKENS, REDACTED);
    for (const secret of this.#spellings) clean = clean.replaceAll(secret, REDACTED);
    return clean;
  }
}

/** The secret as it is, inside JSON, and inside an address. */
function spellingsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

const REDACTED = "[redacted]";
/**
 * Matches the tokens of `query-tokens.ts` and slot tokens: `slot_<host key>.<secret>`. A caller chooses the host key,
 * so it may contain anything except control characters. The text may be JSON, in which a quote of the key is escaped.
 */
const TOKENS = /\b(?:fq1\.[\w-]+\.[\w-]+(?:\.[\w-]+)?|slot_(?:(?:[^"\\\n]|\\.){1,256}\.[\w-]{16,}|[\w-]{16,}))/g;
