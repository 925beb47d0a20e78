import type { Exchange } from "./exchange.ts";
import type { ServiceContext } from "./service-context.ts";

/** Answers one exchange, or throws; then `dispatch` answers it. */
export type Handler = (exchange: Exchange, context: ServiceContext) => void | Promise<void>;
export type BodyHandler = (
  exchange: Exchange,
  body: { readonly [key: string]: unknown },
  context: ServiceContext,
) => void | Promise<void>;
