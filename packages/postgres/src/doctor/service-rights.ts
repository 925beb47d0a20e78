import { readFileSync } from "node:fs";

/** The rights that the role of a service needs, by name. `sql/roles.sql` is the only list of them. */
export interface ServiceRights {
  readonly functions: readonly string[];
  /** Tables that it reads. */
  readonly tables: readonly string[];
}

const ROLES = new URL("../../sql/roles.sql", import.meta.url);
const GRANT = /^GRANT (EXECUTE ON FUNCTION|SELECT ON) ([\w\s,]+?) TO slotkeeper_service;/gm;

export function serviceRights(text = readFileSync(ROLES, "utf8")): ServiceRights {
  const named = [...text.matchAll(GRANT)].map(([, right = "", names = ""]) => ({
    isFunction: right.startsWith("EXECUTE"),
    names: names.split(",").map((name) => name.trim()),
  }));
  return {
    functions: named.filter(({ isFunction }) => isFunction).flatMap(({ names }) => names),
    tables: named.filter(({ isFunction }) => !isFunction).flatMap(({ names }) => names),
  };
}
