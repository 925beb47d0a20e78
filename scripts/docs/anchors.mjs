// Anchors of headings and table rows, and long names in narrow columns.

/** As GitHub makes them, so that a link to a heading works in both places. */
export function slugOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

/** A plugin for markdown-it: a row that explains a name, such as a configuration key, can be linked to. */
export function addRowAnchors(md) {
  md.core.ruler.push("row-anchors", ({ tokens }) => {
    const used = new Set();
    for (const [index, token] of tokens.entries()) {
      if (token.type !== "tr_open" || tokens[index + 1]?.type !== "td_open") continue;
      const name = nameIn(tokens[index + 2]);
      const id = `row-${slugOf(name ?? "")}`;
      if (name === undefined || used.has(id)) continue;
      used.add(id);
      token.attrSet("id", id);
    }
  });
}

/** The name at the beginning of a cell, in code or bold. */
function nameIn({ children }) {
  const [first, second] = children ?? [];
  if (first?.type === "code_inline") return first.content;
  // Bold text may have an empty text before it.
  const [open, text] = first?.type === "text" && first.content === "" ? children.slice(1) : [first, second];
  return open?.type === "strong_open" ? text.content : undefined;
}

/** A plugin for markdown-it: a long name may break after a dot or a comma. */
export function breakNames(md) {
  const render = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (...args) => render(...args).replaceAll(/(?<=[a-z]{2}[.,])(?=[a-z])/gi, "<wbr>");
}
