/**
 * Finds out how much memory this process may use.
 *
 * MEMORY1  The first of these that has a value counts: `MEDIA__SERVER_MEMORY_GB`, `SERVER_MEMORY_GB` (0 counts as not
 *     set), the limit of the container, the memory of the machine, 2 GB.
 * MEMORY2  If the container has several limits, the smallest counts, as in the kernel: those of the control group of
 *     the process and of all groups above it, versions 1 and 2, and the limit that the runtime reports.
 * MEMORY3  A limit above the memory of the machine is ignored. Version 1 uses such a value for "no limit".
 *
 * Sources: the kernel's documents on control groups ("memory.max", "memory.limit_in_bytes"), proc(5) on
 * /proc/self/cgroup.
 */

import { finiteFrom } from "../options.ts";
import { type Environment, EnvironmentReader } from "./environment.ts";
import { hostEnvironment, hostMemory, type MemoryProbe } from "./memory-probe.ts";

/** Where a detected amount of memory comes from. */
export type MemorySource =
  | "MEDIA__SERVER_MEMORY_GB"
  | "SERVER_MEMORY_GB"
  | "cgroup v2"
  | "cgroup v1"
  | "runtime limit"
  | "machine"
  | "default";

/** What `detectMemory` returns. */
export interface DetectedMemory {
  /** The memory in GB (1024³ bytes). */
  readonly gb: number;
  /** Where the amount comes from. */
  readonly source: MemorySource;
}

export const BYTES_PER_GB = 1024 ** 3;
const DEFAULT_GB = 2;
/** Used if the memory of the machine is unknown. No machine has this much. */
const NO_LIMIT_BYTES = 2 ** 60;
const VARIABLES = ["MEDIA__SERVER_MEMORY_GB", "SERVER_MEMORY_GB"] as const;

interface Limit {
  readonly bytes: number;
  readonly source: MemorySource;
}

/**
 * Finds out how much memory this process may use: from the environment, the container or the machine, otherwise 2 GB.
 *
 * @throws {RangeError} if a variable is malformed; the message names it and its value.
 * @example
 * ```ts
 * import { detectMemory } from "slotkeeper/transfers";
 *
 * const { gb, source } = detectMemory();
 * console.log(`${gb} GB (${source})`);
 * ```
 */
export function detectMemory(
  environment: Environment = hostEnvironment(),
  probe: MemoryProbe = hostMemory,
): DetectedMemory {
  const reader = new EnvironmentReader(environment);
  const detected = memoryFrom(reader, probe);
  reader.problems.throwIfAny();
  return detected;
}

/** Like `detectMemory`, but malformed variables are added to the problems of the reader. */
export function memoryFrom(reader: EnvironmentReader, probe: MemoryProbe): DetectedMemory {
  const given = VARIABLES.map((source) => ({ gb: reader.number(source, finiteFrom(0)) ?? 0, source }));
  return given.find(({ gb }) => gb > 0) ?? detectedFrom(probe);
}

function detectedFrom(probe: MemoryProbe): DetectedMemory {
  const total = probe.totalMemory() ?? 0;
  const most = total > 0 ? total : NO_LIMIT_BYTES;
  const runtime: Limit = { bytes: probe.constrainedMemory() ?? 0, source: "runtime limit" };
  const [least] = [...controlGroupLimits(probe), runtime]
    .filter(({ bytes }) => bytes > 0 && bytes < most)
    .toSorted((a, b) => a.bytes - b.bytes);
  if (least !== undefined) return { gb: least.bytes / BYTES_PER_GB, source: least.source };
  return total > 0 ? { gb: total / BYTES_PER_GB, source: "machine" } : { gb: DEFAULT_GB, source: "default" };
}

function controlGroupLimits(probe: MemoryProbe): Limit[] {
  const { unified, memory } = controlGroupPaths(probe.readFile("/proc/self/cgroup") ?? "");
  return [
    ...limitsOf(probe, "cgroup v2", "/sys/fs/cgroup", unified, "memory.max"),
    ...limitsOf(probe, "cgroup v1", "/sys/fs/cgroup/memory", memory, "memory.limit_in_bytes"),
  ];
}

/** Parses lines of `id:controllers:path`. Version 2 has id 0 and no controllers. The path may contain colons. */
function controlGroupPaths(text: string): { unified: string; memory: string } {
  const paths = { unified: "/", memory: "/" };
  for (const line of text.split("\n")) {
    const [, id, controllers = "", path = "/"] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    if (id === "0" && controllers === "") paths.unified = path;
    if (controllers.split(",").includes("memory")) paths.memory = path;
  }
  return paths;
}

/**
 * The limits of the group and of all groups above it. A group that is not mounted (as in a container) has no file and
 * is skipped.
 */
function limitsOf(probe: MemoryProbe, source: MemorySource, mount: string, path: string, file: string): Limit[] {
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  const folders = Array.from({ length: names.length + 1 }, (_, depth) => [mount, ...names.slice(0, depth)].join("/"));
  return folders.toReversed().map((folder) => ({ bytes: bytesIn(probe.readFile(`${folder}/${file}`)), source }));
}

/** Returns 0 for a missing file and for text that is not a number of bytes, such as "max". */
function bytesIn(text: string | undefined): number {
  const trimmed = text?.trim() ?? "";
  return /^\d+$/.test(trimmed) ? Number(trimmed) : 0;
}
