import type { ClientConfig } from "pg";
import { parse, toClientConfig } from "pg-connection-string";

const PAIR = /(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?:\s+|$)/gy;
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * The modes of libpq, except `allow`: it tries a plain connection first, which the driver cannot do. The driver would
 * read any other value as `verify-full`.
 */
const SSL_MODES = ["disable", "prefer", "require", "verify-ca", "verify-full"];

/**
 * Parses a connection string in one of the two forms of PostgreSQL's own tools,
 * `postgres://user:password@host/database` or `host=… dbname=…`. `sslmode` means the same as there. Throws a
 * `TypeError` that never contains the string, because it may contain a password.
 */
export function parseDsn(dsn: string): ClientConfig {
  const url = /^postgres(?:ql)?:\/\//.test(dsn) ? dsn : urlOf(dsn.trim());
  try {
    const { connect_timeout: seconds, ...options } = parse(url, { useLibpqCompat: true });
    if (options["sslmode"] !== undefined && !SSL_MODES.includes(String(options["sslmode"]))) {
      throw new TypeError(`its sslmode is none of ${SSL_MODES.join(", ")}`);
    }
    const connectionTimeoutMillis = seconds === undefined ? CONNECT_TIMEOUT_MS : Number(seconds) * 1000;
    return { connectionTimeoutMillis, ...toClientConfig(options) };
  } catch (error) {
    throw badDsn((error as Error).message);
  }
}

/** The address of a server, without user and password. */
export function placeOf({ host = "localhost", port = 5432 }: ClientConfig): string {
  return host.startsWith("/") ? host : `${host}:${port}`;
}

/** libpq also accepts each keyword as a parameter of a URL, and so does the driver. */
function urlOf(text: string): string {
  const parameters: string[] = [];
  let database = "";
  let end = 0;
  for (const match of text.matchAll(PAIR)) {
    const [pair, keyword = "", quoted, bare = ""] = match;
    end = match.index + pair.length;
    const value = encodeURIComponent((quoted ?? bare).replaceAll(/\\(.)/g, "$1"));
    if (keyword === "dbname") database = value;
    else parameters.push(`${keyword}=${value}`);
  }
  if (end === 0 || end < text.length) throw badDsn("it is neither a URL nor a list of keyword=value");
  return `postgres:///${database}?${parameters.join("&")}`;
}

function badDsn(problem: string): TypeError {
  return new TypeError(
    `Expected the dsn to be like postgres://user:password@host:5432/database, but: ${problem} (the dsn is not shown, because it may contain a password)`,
  );
}
