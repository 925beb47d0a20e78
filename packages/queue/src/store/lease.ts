import type { Account } from "../order/state.ts";

/**
 * A slot in somebody's hands.
 *
 * | state    | isReleased | isOver | the slot is | the token                      |
 * |----------|------------|--------|-------------|--------------------------------|
 * | held     | false      | false  | taken       | renews and releases            |
 * | ending   | true       | false  | taken       | is nobody's, until `endsAt`    |
 * | over     | any        | true   | free        | is nobody's                    |
 */
export interface Lease {
  readonly slotToken: string;
  readonly fence: number;
  readonly session: string;
  readonly host: string;
  readonly account: Account;
  readonly grantedAt: number;
  readonly isProbe: boolean;
  /** The instance it was granted to. */
  readonly instance: string;
  /** It was told of more than once, and may have been delivered: nobody may take it for uncollected. */
  isShared: boolean;
  endsAt: number;
  isReleased: boolean;
  isOver: boolean;
  leaseIndex: number;
}
