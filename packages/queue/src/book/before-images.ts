import type { BookRecord, RecordKind } from "./records.ts";

/** A record that a decision has changed, with what it was before; undefined: there was none. */
interface Image {
  readonly kind: RecordKind;
  readonly key: string;
  readonly before: BookRecord | undefined;
  /** Of another kind with the same key. */
  next: Image | undefined;
}

/** Up to this number of images, comparing them with each other costs less than a map. */
const FEW = 16;

/** What a decision has changed so far, in order: each record once, as it was before. */
export class BeforeImages {
  #images: Image[] = [];
  /** Only of many. */
  #byKey: Map<string, Image> | undefined;

  get isEmpty(): boolean {
    return this.#images.length === 0;
  }

  /** In the order in which they were first noted. */
  get all(): readonly Image[] {
    return this.#images;
  }

  /** Noting a record again changes nothing: the first image is what it was before. */
  note(kind: RecordKind, key: string, before: BookRecord | undefined): void {
    if (this.find(kind, key) !== undefined) return;
    const image: Image = { kind, key, before, next: undefined };
    this.#images.push(image);
    if (this.#byKey !== undefined) this.#file(image, this.#byKey);
    else if (this.#images.length > FEW) this.#fileAll();
  }

  find(kind: RecordKind, key: string): Image | undefined {
    if (this.#byKey === undefined) {
      for (const image of this.#images) if (image.kind === kind && image.key === key) return image;
      return undefined;
    }
    let image = this.#byKey.get(key);
    while (image !== undefined && image.kind !== kind) image = image.next;
    return image;
  }

  clear(): void {
    if (this.#images.length > 0) this.#images = [];
    this.#byKey = undefined;
  }

  #fileAll(): void {
    this.#byKey = new Map();
    for (const image of this.#images) this.#file(image, this.#byKey);
  }

  #file(image: Image, byKey: Map<string, Image>): void {
    image.next = byKey.get(image.key);
    byKey.set(image.key, image);
  }
}
