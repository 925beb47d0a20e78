/**
 * Reads the memory of the host. No other file of the transfers accesses the host. Node modules are looked up at run
 * time and not imported, so that the entry loads in browsers and Workers, where the memory is unknown.
 */

/** Reads the memory of the machine and of this process. Replace it in tests or for other runtimes. */
export interface MemoryProbe {
  /** The text of a file; `undefined` if it cannot be read. */
  readFile(path: string): string | undefined;
  /** The memory limit that the runtime reports, in bytes; 0 or `undefined` if there is none. */
  constrainedMemory(): number | undefined;
  /** The machine's memory in bytes; `undefined` if unknown. */
  totalMemory(): number | undefined;
  /** The resident memory of this process in bytes; `undefined` if unknown. */
  rss(): number | undefined;
}

/** The parts of Node that are used here. Other hosts have fewer of them, or none. */
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
