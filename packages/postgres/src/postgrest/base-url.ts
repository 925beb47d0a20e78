/**
 * The address that `/rpc/<function>` is appended to, without a slash at the end. Throws a `TypeError` that never
 * contains the given text, because it may contain a password.
 */
export function parseBaseUrl(given: string): string {
  const expected = "Expected `baseUrl` to be the http or https address of a PostgREST server";
  if (!URL.canParse(given)) throw new TypeError(`${expected}, for example "http://127.0.0.1:3000"`);
  const url = new URL(given);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError(`${expected}, got "${url.protocol}"`);
  if (url.username !== "" || url.password !== "") {
    throw new TypeError(`${expected} without user and password: send credentials as \`authHeader\``);
  }
  if (url.search !== "" || url.hash !== "") throw new TypeError(`${expected} without "?" and "#"`);
  return url.href.replace(/\/+$/, "");
}
