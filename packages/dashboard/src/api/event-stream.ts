/** One server-sent event. */
export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/**
 * Reads server-sent events from a response. `EventSource` cannot send the token, so this reads the stream of `fetch`.
 * Comments, `id` and `retry` are skipped: the connection has its own back-off.
 */
export async function* readEvents(body: ReadableStream<BufferSource>): AsyncGenerator<StreamEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const parsed = parseBlock(block);
        if (parsed !== undefined) yield parsed;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parseBlock(block: string): StreamEvent | undefined {
  const fields = block.split(/\r?\n/).map((line) => /^(\w+):? ?(.*)$/.exec(line) ?? []);
  const data = fields.filter(([, name]) => name === "data").map(([, , value = ""]) => value);
  if (data.length === 0) return undefined;
  const [, , event = "message"] = fields.find(([, name]) => name === "event") ?? [];
  return { event, data: data.join("\n") };
}
