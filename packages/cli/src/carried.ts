/** Checks what a request to the service can carry. Values are secrets or may contain one, so no message shows them. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** `fetch` removes white space at the end, such as the newline of a file. */
const HEADER_VALUE = /^[\t -~\x80-\xff]+\s*$/;
const ADDRESS = /^https?:\/\/[^@/]+\/[^?#]*$/;

/** The values by the name of their flag. */
interface Carried {
  readonly url?: string | undefined;
  readonly header?: string | undefined;
  readonly token?: string | undefined;
  readonly "internal-token"?: string | undefined;
}

/**
 * Throws a `TypeError` that names the flag. `fetch` would fail later, as if the service were unreachable, and some of
 * its messages show the value.
 */
export function mustBeCarried(given: Carried): void {
  const { url, header } = given;
  if (url !== undefined && !(URL.canParse(url) && ADDRESS.test(new URL(url).href))) {
    throw new TypeError(
      "Expected --url, or SLOTKEEPER_URL, to be an http or https URL without user, password, query and fragment.",
    );
  }
  if (header !== undefined && !HEADER_NAME.test(header)) {
    throw new TypeError("Expected --header to be a name that an HTTP header can have.");
  }
  for (const flag of ["token", "internal-token"] as const) {
    const value = given[flag];
    if (value === undefined || HEADER_VALUE.test(value)) continue;
    throw new TypeError(
      `Expected --${flag}, or the variable in its place, to be a value that an HTTP header can have.`,
    );
  }
}
