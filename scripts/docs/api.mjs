// The API reference: one Markdown page for each entry of the published packages, made from the declaration files.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { allMembers, exportsOf, inheritedMembers } from "./declarations.mjs";

const PACKAGES = ["core", "client", "cloudflare"];

/** `[{ path, markdown }]`, with `path` where a page of `docs` would be. */
export function apiPages(root) {
  return PACKAGES.flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8"));
    return (
      Object.entries(manifest.exports)
        .filter(([, target]) => typeof target === "object" && "types" in target)
        // For the packages of this repository only.
        .filter(([entry]) => !entry.endsWith("/parts"))
        .map(([entry, { types }]) => {
          const name = `${manifest.name}${entry.slice(1)}`;
          const found = exportsOf(join(root, "packages", folder, types));
          const names = new Set(found.map((one) => one.name));
          const declared = found
            .map((one) => ({ ...one, members: allMembers(one, names), inherited: inheritedMembers(one, names) }))
            .sort((a, b) => a.name.localeCompare(b.name));
          return {
            path: `api/${name.replaceAll(/[@/]+/g, "-").replace(/^-/, "")}.md`,
            markdown: pageOf(name, declared),
          };
        })
    );
  });
}

const ORDER = ["class", "function", "constant", "error", "interface", "type"];
const TITLES = {
  class: "Classes",
  function: "Functions",
  constant: "Constants",
  error: "Errors",
  interface: "Interfaces",
  type: "Types",
};

function pageOf(name, declared) {
  const groups = ORDER.map((kind) => [kind, declared.filter((one) => groupOf(one) === kind)]).filter(
    ([, list]) => list.length > 0,
  );
  const contents = groups.map(
    ([kind, list]) =>
      `- ${TITLES[kind]}: ${list.map((one) => `[\`${one.name}\`](#${one.name.toLowerCase()})`).join(", ")}`,
  );
  const sections = groups.flatMap(([, list]) => list.map(sectionOf));
  return [`# API: \`${name}\``, introduction(name), importLine(name, declared), contents.join("\n"), ...sections].join(
    "\n\n",
  );
}

const GUIDES = {
  slotkeeper: "[The library, by example](../guides/library.md)",
  "slotkeeper/limiter": "[Calling a model API](../guides/model-api.md)",
  "slotkeeper/testing": "[Testing](../guides/testing.md)",
  "slotkeeper/effects": "[Cooperative tasks](../guides/effects.md)",
  "slotkeeper/threads": "[Worker threads](../guides/threads.md)",
  "slotkeeper/transfers": "[Transfers](../guides/transfers.md)",
  "@slotkeeper/client": "[The client](../guides/client.md)",
  "@slotkeeper/client/express": "[Middleware](../guides/client.md#middleware)",
  "@slotkeeper/client/fastify": "[Middleware](../guides/client.md#middleware)",
  "@slotkeeper/client/hono": "[Middleware](../guides/client.md#middleware)",
  "@slotkeeper/cloudflare": "[On Cloudflare, with nothing to run](../guides/cloudflare.md)",
  "@slotkeeper/client/opentelemetry": "[Telemetry](../guides/client.md#telemetry)",
};

function introduction(name) {
  const guide = GUIDES[name];
  const everything = `Everything that \`${name}\` exports, from the comments in the code.`;
  return guide === undefined ? everything : `${everything} ${guide} shows how to use it.`;
}

const groupOf = ({ kind, name }) => (/^(?:class|constant)$/.test(kind) && name.endsWith("Error") ? "error" : kind);

function importLine(name, declared) {
  const byMembers = declared.toSorted((a, b) => b.members.length - a.members.length);
  const first =
    ["class", "function"].map((kind) => byMembers.find((one) => groupOf(one) === kind)).find(Boolean) ?? declared[0];
  return fence(`import { ${first.name} } from "${name}";`);
}

const fence = (code) => `\`\`\`ts\n${code}\n\`\`\``;

function sectionOf(one) {
  const parts = [`## ${one.name}`, fence(one.signatures.join("\n")), ...docParts(one.doc)];
  for (const { name, signature, doc } of one.members) {
    parts.push(`### ${one.name}: ${name}`, fence(signature), ...docParts(doc));
  }
  for (const { base, names } of one.inherited) {
    parts.push(`Also from [\`${base}\`](#${base.toLowerCase()}): ${names.map((name) => `\`${name}\``).join(", ")}.`);
  }
  return parts.join("\n\n");
}

function docParts({ description, params, returns, throws, notes, examples }) {
  const list = (title, items) =>
    items.length === 0 ? [] : [`${title}\n\n${items.map((item) => `- ${item.replaceAll("\n", "\n  ")}`).join("\n")}`];
  return [
    ...(description === "" ? [] : [description]),
    ...list("Parameters:", params),
    ...(returns === "" ? [] : [`Returns ${returns}`]),
    ...list("Throws:", throws),
    ...notes,
    ...examples.map((example) => `Example:\n\n${fence(example)}`),
  ];
}
