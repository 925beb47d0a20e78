// Reads the exported declarations of a package entry from its emitted `.d.ts` files, with their TSDoc comments.
// TypeScript 7 has no stable compiler API yet, and declaration files are simple: a parser is enough.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";
import { parseTsdoc } from "./tsdoc.mjs";

const parsed = new Map();

function fileAt(path) {
  const known = parsed.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(path, "utf8");
  const { program, comments } = parseSync(path, text);
  const file = { path, text, body: program.body, comments };
  parsed.set(path, file);
  return file;
}

/** `./semaphore.ts` as an emitted declaration file names it. */
function resolveSpecifier(from, specifier) {
  const path = join(dirname(from), specifier).replace(/\.(?:ts|js)$/, ".d.ts");
  return existsSync(path) ? path : undefined;
}

/** All exports of an entry, in the order in which it names them: `[{ name, kind, nodes, file, doc }]`. */
export function exportsOf(entry) {
  const file = fileAt(entry);
  return file.body.flatMap((statement) => {
    if (statement.type === "ExportAllDeclaration") {
      const path = resolveSpecifier(entry, statement.source.value);
      return path === undefined ? [] : exportsOf(path);
    }
    if (statement.type !== "ExportNamedDeclaration") return [];
    if (statement.declaration !== null) return [named(file, nameOf(statement.declaration))];
    return statement.specifiers.map(({ local, exported }) => ({
      ...find(file, statement, local.name),
      name: exported.name,
    }));
  });
}

/** The declaration of a name that is exported from here, or by way of another file. */
function find(file, statement, name) {
  const path = statement.source === null ? importOf(file, name) : resolveSpecifier(file.path, statement.source.value);
  if (path === undefined) return named(file, name);
  const target = fileAt(path);
  if (declarations(target, name).length > 0) return named(target, name);
  for (const other of target.body) {
    const specifier =
      other.type === "ExportNamedDeclaration" && other.specifiers.find(({ exported }) => exported.name === name);
    if (specifier) return find(target, other, specifier.local.name);
  }
  throw new Error(`${target.path} exports no ${name}`);
}

function importOf(file, name) {
  for (const statement of file.body) {
    if (statement.type !== "ImportDeclaration") continue;
    if (statement.specifiers.some(({ local }) => local.name === name))
      return resolveSpecifier(file.path, statement.source.value);
  }
  return undefined;
}

const KINDS = {
  ClassDeclaration: "class",
  TSInterfaceDeclaration: "interface",
  TSTypeAliasDeclaration: "type",
  TSDeclareFunction: "function",
  FunctionDeclaration: "function",
  VariableDeclaration: "constant",
};

function nameOf(node) {
  return node.type === "VariableDeclaration" ? node.declarations[0].id.name : node.id.name;
}

function declarations(file, name) {
  return file.body
    .map((statement) => ({ outer: statement, node: statement.declaration ?? statement }))
    .filter(({ node }) => node.type in KINDS && nameOf(node) === name);
}

function named(file, name) {
  const found = declarations(file, name);
  if (found.length === 0) throw new Error(`${file.path} declares no ${name}`);
  const docs = found.map(({ outer }) => docBefore(file, outer));
  return {
    name,
    kind: KINDS[found[0].node.type],
    doc: docs.find((doc) => doc.description !== "") ?? docs[0],
    signatures: found.map(({ node }) => headOf(file, node)),
    members: found.flatMap(({ node }) => membersOf(file, node)),
    omitted: found.flatMap(({ node }) => omittedIn(node)),
    bases: found.flatMap(({ node }) => basesOf(node)).map((base) => () => find(file, { source: null }, base)),
  };
}

/** Names of the class or interfaces that a declaration extends. A type `Omit<Base, …>` extends `Base`. */
function basesOf(node) {
  const alias = omitOf(node)?.[0].typeName;
  const parents = [alias, node.superClass, ...(node.extends ?? []).map(({ expression }) => expression)];
  return parents.filter((parent) => parent?.type === "Identifier").map(({ name }) => name);
}

/** The arguments of a type that is `Omit<…>`. */
function omitOf({ typeAnnotation }) {
  return typeAnnotation?.typeName?.name === "Omit" ? typeAnnotation.typeArguments.params : undefined;
}

/** The names that a type `Omit<Base, names>` leaves out. */
function omittedIn(node) {
  const names = omitOf(node)?.[1];
  return (names?.types ?? [names]).map((type) => type?.literal?.value);
}

/** The members of exported bases: `[{ base, names }]`. A reader finds them in the section of the base. */
export function inheritedMembers(declared, exportedNames) {
  const own = new Set([...declared.members.map(({ name }) => name), ...declared.omitted]);
  return basesFound(declared).flatMap((found) => {
    const names = exportedNames.has(found.name) ? allMembers(found, exportedNames).map(({ name }) => name) : [];
    return [{ base: found.name, names }, ...inheritedMembers(found, exportedNames)]
      .map((one) => ({ ...one, names: one.names.filter((name) => !own.has(name)) }))
      .filter(({ names: left }) => left.length > 0);
  });
}

function basesFound({ bases }) {
  return bases.flatMap((base) => {
    try {
      return [base()];
    } catch {
      return []; // a type of the language, such as Error or Disposable
    }
  });
}

/** Own members, and those of bases that are not exported, because a reader cannot look them up elsewhere. */
export function allMembers(declared, exportedNames) {
  const own = new Set(declared.members.map(({ name }) => name));
  for (const name of declared.omitted) own.add(name);
  const inherited = basesFound(declared).flatMap((found) =>
    exportedNames.has(found.name) ? [] : allMembers(found, exportedNames),
  );
  return [...declared.members, ...inherited.filter(({ name }) => !own.has(name) && name !== "constructor")];
}

/**
 * The part of a declaration that a reader sees: all of a function, type or constant; the first line of a class or
 * interface.
 */
function headOf(file, node) {
  const end = node.type === "ClassDeclaration" || node.type === "TSInterfaceDeclaration" ? node.body.start : node.end;
  const source = file.text.slice(node.start, end);
  return withoutComments(source)
    .replace(/^(?:export )?(?:declare )?/, "")
    .replace(/\w+_base\b/, (base) => typeOfConstant(file, base))
    .replace(/;?\s*$/, "")
    .trim();
}

/**
 * The compiler gives a name to a base class that is an expression. The type of that constant is more useful than the
 * name.
 */
function typeOfConstant(file, name) {
  const [, type = name] = new RegExp(`const ${name}: ([\\s\\S]*?);\\n(?=/|export|declare)`).exec(file.text) ?? [];
  return type.replaceAll(/\s+/g, " ");
}

function membersOf(file, { type, body }) {
  if (type !== "ClassDeclaration" && type !== "TSInterfaceDeclaration") return [];
  return (
    body.body
      .filter((member) => member.key?.type !== "PrivateIdentifier" && member.accessibility !== "private")
      // A key that is our own symbol, unlike `Symbol.dispose`, is of no use to a reader.
      .filter((member) => member.computed !== true || member.key.type !== "Identifier")
      .map((member) => ({
        name: memberName(file, member),
        signature: withoutComments(file.text.slice(member.start, member.end)).replace(/;\s*$/, "").trim(),
        doc: docBefore(file, member),
      }))
      .filter(({ doc }) => !doc.isInternal)
  );
}

function memberName(file, member) {
  if (member.key === undefined) return "call";
  return file.text.slice(member.key.start, member.key.end);
}

function withoutComments(source) {
  return source.replaceAll(/\/\*[\s\S]*?\*\/\s*/g, "").replaceAll(/^ {4}/gm, "  ");
}

function docBefore(file, node) {
  const comment = file.comments.findLast(
    ({ type, value, end }) =>
      type === "Block" && value.startsWith("*") && end <= node.start && file.text.slice(end, node.start).trim() === "",
  );
  return parseTsdoc(comment?.value ?? "");
}
