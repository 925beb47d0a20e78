/**
 * The last line of defence: nothing that is written anywhere holds a token or a key. Code does not log secrets in the
 * first place; this catches what slips through by way of an error's message, a stack, or a requested path.
 */
export class Scrubber {
  #spellings: readonly string[] = [];

  /** The secrets in force. Those of an earlier configuration stay secret. */
  learn(secrets: Iterable<string>): void {
    const spelled = [...secrets].filter((secret) => secret !== "").flatMap(spellingsOf);
    // The longest first: one may be part of another.
    this.#spellings = [...new Set([...this.#spellings, ...spelled])].sort((a, b) => b.length - a.length);
  }

  scrub(text: string): string {
    let clean = text.replaceAll(TOKENS, REDACTED);
    for (const secret of this.#spellings) clean = clean.replaceAll(secret, REDACTED);
    return clean;
  }
}

/** As it is, inside JSON, and inside an address. */
function spellingsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

const REDACTED = "[redacted]";
/**
 * What `query-tokens.ts` makes, and slot tokens: `slot_<host key>.<secret>`. A caller chooses the host key, so it may hold
 * anything but control characters; the text may be JSON, where a quote of the key is escaped.
 */
const TOKENS = /\b(?:fq1\.[\w-]+\.[\w-]+(?:\.[\w-]+)?|slot_(?:(?:[^"\\\n]|\\.){1,256}\.[\w-]{16,}|[\w-]{16,}))/g;
