/**
 * Where the library learns about memory: the only file of the transfers that touches the host. Node's modules are asked
 * for when needed, not imported, so that the entry loads in browsers and Workers, where nothing is known.
 */

/** How the library reads the memory of the machine and of this process. Give your own to test, or for other runtimes. */
export interface MemoryProbe {
  /** The text of a file; `undefined` if it cannot be read. */
  readFile(path: string): string | undefined;
  /** The limit that the host's runtime knows of, in bytes; 0 or `undefined` if none. */
  constrainedMemory(): number | undefined;
  /** The machine's memory in bytes; `undefined` if unknown. */
  totalMemory(): number | undefined;
  /** The resident memory of this process in bytes; `undefined` if unknown. */
  rss(): number | undefined;
}

/** As much of Node as is used here; other hosts have less of it, or none. */
interface HostModules {
  "node:fs": { readFileSync(path: string, encoding: "utf8"): string };
  "node:os": { totalmem(): number };
}

interface HostProcess {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly memoryUsage?: { rss?(): number };
  constrainedMemory?(): number | undefined;
  getBuiltinModule?<Id extends keyof HostModules>(id: Id): HostModules[Id] | undefined;
}

const host = (): HostProcess | undefined => (globalThis as { process?: HostProcess }).process;

export const hostMemory: MemoryProbe = {
  readFile: (path) => {
    try {
      return host()?.getBuiltinModule?.("node:fs")?.readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
  constrainedMemory: () => host()?.constrainedMemory?.(),
  totalMemory: () => host()?.getBuiltinModule?.("node:os")?.totalmem(),
  rss: () => host()?.memoryUsage?.rss?.(),
};

export const hostEnvironment = (): Readonly<Record<string, string | undefined>> => host()?.env ?? {};
