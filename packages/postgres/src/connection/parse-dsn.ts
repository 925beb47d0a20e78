import type { ClientConfig } from "pg";

/** libpq's names for what the driver calls otherwise. */
const KEYWORDS: { readonly [keyword: string]: keyof ClientConfig } = {
  host: "host",
  hostaddr: "host",
  port: "port",
  user: "user",
  password: "password",
  dbname: "database",
  application_name: "application_name",
  options: "options",
};
const PAIR = /\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)/gy;

/**
 * A connection string in either of the forms that PostgreSQL's own tools take: `postgres://user:password@host/database`
 * or `host=… dbname=…`. Throws a `TypeError` that never quotes it: a password is in there.
 */
export function parseDsn(dsn: string): ClientConfig {
  if (/^postgres(?:ql)?:\/\//.test(dsn)) {
    if (!URL.canParse(dsn.replace(/@\//, "@localhost/"))) throw badDsn("it is not a valid URL");
    return { connectionString: dsn };
  }
  const config: Record<string, unknown> = {};
  let end = 0;
  for (const match of dsn.trim().matchAll(PAIR)) {
    const [text, keyword = "", quoted, bare] = match;
    end = match.index + text.length;
    Object.assign(config, setting(keyword, (quoted ?? bare ?? "").replaceAll(/\\(.)/g, "$1")));
  }
  if (end === 0 || end < dsn.trim().length) throw badDsn("it is neither a URL nor a list of keyword=value");
  return config;
}

function setting(keyword: string, value: string): ClientConfig {
  if (keyword === "sslmode") return sslOf(value);
  if (keyword === "connect_timeout") return { connectionTimeoutMillis: Number(value) * 1000 };
  const name = KEYWORDS[keyword];
  if (name === undefined) throw badDsn(`the keyword ${keyword} is not known`);
  return { [name]: name === "port" ? Number(value) : value };
}

/** As libpq reads them, but that `prefer` and `allow` do not try twice. */
function sslOf(mode: string): ClientConfig {
  if (mode === "disable" || mode === "allow" || mode === "prefer") return { ssl: false };
  if (mode === "require") return { ssl: { rejectUnauthorized: false } };
  return { ssl: true };
}

function badDsn(problem: string): TypeError {
  return new TypeError(
    `Expected the dsn to be like postgres://user:password@host:5432/database, but ${problem} (not shown: it may hold a password)`,
  );
}
