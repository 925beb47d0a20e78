import type { IncomingMessage } from "node:http";

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Makes of an absolute-form target (`GET http://host/path`) the usual one. Its host is then the host of the request,
 * whatever the `Host` header says (RFC 9112, 3.2.2): who looks at the one must not be fooled by the other.
 */
export function normaliseTarget(request: IncomingMessage): void {
  const { url = "/" } = request;
  if (url.startsWith("/")) return;
  const [, authority, rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return;
  request.headers.host = authority.slice(authority.lastIndexOf("@") + 1);
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
}

/** Without exactly one `Host`, two who read the same request may disagree on whom it is for. HTTP/1.0 needs none. */
export function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
}
