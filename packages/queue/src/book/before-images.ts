import type { BookRecord, RecordKind } from "./records.ts";

/** A record that a decision has changed, with what it was before; undefined: there was none. */
interface Image {
  readonly kind: RecordKind;
  readonly key: string;
  readonly before: BookRecord | undefined;
}

/** Up to this number of images, comparing each with each costs less than a set. */
const FEW = 24;

/** What a decision has changed so far, in order. A record may be noted again: the first image is what it was before. */
export class BeforeImages {
  #images: Image[] = [];

  get isEmpty(): boolean {
    return this.#images.length === 0;
  }

  note(kind: RecordKind, key: string, before: BookRecord | undefined): void {
    this.#images.push({ kind, key, before });
  }

  find(kind: RecordKind, key: string): Image | undefined {
    return this.#images.find((image) => image.key === key && image.kind === kind);
  }

  clear(): void {
    if (this.#images.length > 0) this.#images = [];
  }

  /** Each record once, as it was before. */
  first(): readonly Image[] {
    const images = this.#images;
    if (images.length <= FEW) return images.filter((image, at) => indexOf(images, image) === at);
    const seen = new Set<string>();
    return images.filter(({ kind, key }) => seen.size < seen.add(`${kind} ${key}`).size);
  }
}

function indexOf(images: readonly Image[], { kind, key }: Image): number {
  return images.findIndex((other) => other.key === key && other.kind === kind);
}
