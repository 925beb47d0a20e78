import { MemoryStore, type SlotStore } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import { ConfigError } from "../config/config-error.ts";
import type { Backend } from "../config/settings.ts";
import { newSlotToken } from "../tokens/random-names.ts";

/** A store with what belongs to it. */
export interface OpenStore {
  readonly store: SlotStore;
  /** For people: `memory`, `memory, journal /var/lib/slots.journal`. */
  readonly description: string;
  /** Keys that sign session tokens and outlive the process; undefined: the store keeps none. */
  readonly tokenKeys: readonly string[] | undefined;
  /** Whether it can grant now. */
  isReady(): boolean | Promise<boolean>;
  close(): Promise<void>;
}

/** The only place where a store is made. */
export function openStore(backend: Backend, clock: Clock): OpenStore {
  if (backend.mode !== "memory") {
    throw new ConfigError([
      `\`backend.mode\` ${JSON.stringify(backend.mode)} is not part of this version: it has "memory"`,
    ]);
  }
  if (backend.journal !== undefined) {
    throw new ConfigError(["`backend.memory.journal` (`--data`) is not part of this version"]);
  }
  return {
    store: new MemoryStore({ clock, newToken: newSlotToken }),
    description: "memory (forgotten at exit)",
    tokenKeys: undefined,
    isReady: () => true,
    close: async () => {},
  };
}
