import type { JournalEvent } from "../journal/journal.ts";
import type { Logger } from "../log/logger.ts";

const CLOCK_CHANGED =
  "the clock was changed since the journal was last written: the service continues with the time of the journal";

export function logJournalEvent(log: Logger, path: string, event: JournalEvent): void {
  const { type: _, ...fields } = event;
  switch (event.type) {
    case "opened":
      log.info("journal opened", { path, ...fields });
      if (event.aheadMs !== 0) log.warn(CLOCK_CHANGED, { path, aheadMs: Math.round(event.aheadMs) });
      return;
    case "compacted":
      log.debug("journal compacted", { path, ...fields });
      return;
    case "compaction-failed":
      log.warn("not enough disk space to compact the journal: it continues to grow", { path, ...fields });
      return;
    case "unwritable":
      log.error("the journal cannot be written: nothing is granted until it can", { path, ...fields });
      return;
    case "writable":
      log.info("the journal can be written again", { path });
      return;
    case "lock-lost":
      log.error("another process has taken over the journal: this process grants nothing more", { path });
  }
}
