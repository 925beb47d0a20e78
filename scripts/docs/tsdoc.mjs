// The parts of a TSDoc comment: description, `@param`, `@returns`, `@throws`, `@defaultValue`, `@example`, `@deprecated`.

/** The text of a comment without its stars, each tag on a line of its own. */
function linesOf(comment) {
  return comment
    .replaceAll(/ +@(defaultValue|default|internal)\b/g, "\n@$1")
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, ""));
}

export function parseTsdoc(comment) {
  const doc = { description: "", params: [], returns: "", throws: [], examples: [], notes: [], isInternal: false };
  let take = (text) => {
    doc.description = joined(doc.description, text);
  };
  for (const line of linesOf(comment)) {
    const [, tag, rest = ""] = /^@(\w+)\s*(.*)$/.exec(line) ?? [];
    if (tag === undefined) take(line);
    else take = started(doc, tag, rest);
  }
  return trimmed(doc);
}

const joined = (text, line) => (text === "" ? line : `${text}\n${line}`);

/** Opens the section of a tag and returns what further lines do to it. */
function started(doc, tag, rest) {
  const section = (list, first) => {
    const at = list.push(first) - 1;
    return (line) => {
      list[at] = joined(list[at], line);
    };
  };
  if (tag === "param") return section(doc.params, rest.replace(/^(\S+)\s+-?\s*/, "`$1`: "));
  if (tag === "throws") return section(doc.throws, rest.replace(/^\{(.+?)\}/, "`$1`"));
  if (tag === "example") return section(doc.examples, rest);
  if (tag === "defaultValue" || tag === "default") return section(doc.notes, `Default: ${rest}`);
  if (tag === "deprecated") return section(doc.notes, `Deprecated. ${rest}`);
  if (tag === "internal") doc.isInternal = true;
  if (tag !== "returns") return section(doc.notes, rest);
  doc.returns = rest;
  return (line) => {
    doc.returns = joined(doc.returns, line);
  };
}

function trimmed(doc) {
  const clean = (text) => text.replaceAll(/\{@link (\S+?)\}/g, "`$1`").trim();
  const code = (text) =>
    text
      .replace(/^\s*```\w*\n/, "")
      .replace(/\n```\s*$/, "")
      .trim();
  return {
    description: clean(doc.description),
    params: doc.params.map(clean),
    returns: clean(doc.returns),
    throws: doc.throws.map(clean),
    examples: doc.examples.map(code).filter((text) => text !== ""),
    notes: doc.notes.map(clean).filter((text) => text !== ""),
    isInternal: doc.isInternal,
  };
}
