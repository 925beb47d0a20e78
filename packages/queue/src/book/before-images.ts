import type { BookRecord, RecordKind } from "./records.ts";

/** A record that a decision changed, as it was before. Undefined: the record did not exist. */
interface Image {
  readonly kind: RecordKind;
  readonly key: string;
  readonly before: BookRecord | undefined;
}

/** What a decision has changed so far: each record once, in the order in which they were first changed. */
export class BeforeImages {
  readonly #images = new Map<string, Image>();

  get isEmpty(): boolean {
    return this.#images.size === 0;
  }

  note(kind: RecordKind, key: string, before: BookRecord | undefined): void {
    const name = `${kind} ${key}`;
    if (!this.#images.has(name)) this.#images.set(name, { kind, key, before });
  }

  values(): Iterable<Image> {
    return this.#images.values();
  }

  clear(): void {
    if (this.#images.size > 0) this.#images.clear();
  }
}
