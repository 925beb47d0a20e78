/** A host as the memory code sees one: its files, what its runtime knows, and how much is in use. */
import type { MemoryProbe } from "slotkeeper/transfers";

export const MB = 1024 ** 2;
export const GB = 1024 ** 3;

export class FakeMemory implements MemoryProbe {
  files: Readonly<Record<string, string>> = {};
  constrainedBytes: number | undefined = undefined;
  totalBytes: number | undefined = undefined;
  rssBytes: number | undefined = undefined;

  constructor(parts: Partial<Pick<FakeMemory, "files" | "constrainedBytes" | "totalBytes" | "rssBytes">> = {}) {
    Object.assign(this, parts);
  }

  readFile(path: string): string | undefined {
    return this.files[path];
  }

  constrainedMemory(): number | undefined {
    return this.constrainedBytes;
  }

  totalMemory(): number | undefined {
    return this.totalBytes;
  }

  rss(): number | undefined {
    return this.rssBytes;
  }
}
