import type { FairQueue } from "@slotkeeper/queue";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Logger } from "../log/logger.ts";
import type { OpenStore } from "../store/open-store.ts";
import type { QueryTokens } from "../tokens/query-tokens.ts";
import type { Guards } from "./guards.ts";
import type { HeldCalls } from "./held-calls.ts";

/** What a refresh replaces, as a whole: a request sees one configuration from its beginning to its end. */
export interface Live {
  readonly config: LoadedConfig;
  readonly guards: Guards;
  readonly tokens: QueryTokens;
}

/** What the routes work with. */
export interface ServiceContext {
  readonly queue: FairQueue;
  readonly opened: OpenStore;
  readonly held: HeldCalls;
  readonly log: Logger;
  readonly instance: string;
  readonly version: string;
  readonly live: Live;
  refresh(): Promise<void>;
}
