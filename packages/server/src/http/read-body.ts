import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { LIMITS } from "@slotkeeper/protocol";

export type Body =
  | { readonly kind: "object"; readonly value: { readonly [key: string]: unknown } }
  | { readonly kind: "too-large"; readonly isDrained: boolean }
  | { readonly kind: "bad-json"; readonly detail: string };

/** How much of a body that is too large is read and discarded, so that the caller can read why it was refused. */
const DRAINED_BYTES = 1024 * 1024;

/** A caller that disconnects before its request is complete gets no answer. */
export function readBody(request: IncomingMessage): Promise<Body> {
  return new Promise((resolve) => {
    let chunks: Buffer[] = [];
    let size = 0;
    // The request lives longer than its body, as long as the call is held. Its listeners must not keep the body alive.
    let settle: ((body: Body) => void) | undefined = resolve;
    const done = (body: Body) => {
      settle?.(body);
      settle = undefined;
      chunks = [];
    };
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= LIMITS.bodyBytes) chunks.push(chunk);
      else if (size > DRAINED_BYTES) done({ kind: "too-large", isDrained: false });
    });
    request.on("end", () => {
      if (size > LIMITS.bodyBytes) done({ kind: "too-large", isDrained: true });
      else done(parse(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    });
  });
}

/** Does not pass on the message of the parser: it quotes the body, which may contain a token. */
function parse(bytes: Buffer): Body {
  const text = bytes.toString();
  // Bytes that are not UTF-8 become this character, but the caller may also have sent it.
  if (text.includes("\uFFFD") && !isUtf8(bytes)) return { kind: "bad-json", detail: "The body is not valid UTF-8" };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "bad-json", detail: bytes.length === 0 ? "The body is empty" : "The body is not valid JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const kind = value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
    return { kind: "bad-json", detail: `Expected the body to be a JSON object, got ${kind}` };
  }
  return { kind: "object", value: withoutNulls(value as { readonly [key: string]: unknown }) };
}

function withoutNulls(value: { readonly [key: string]: unknown }): { readonly [key: string]: unknown } {
  if (!Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
}
