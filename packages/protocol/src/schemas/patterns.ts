import { NAME } from "../settings/setting-checks.ts";

/** The patterns of the schemas, each with what it means for a person. */
export const PATTERNS = {
  /** Half of a surrogate pair is no character: UTF-8 has no bytes for it, and two of them would look the same. */
  printable: {
    source: "^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff]*$",
    means: "free of control characters and unpaired surrogates",
  },
  listen: { source: "^(?:\\[[0-9A-Fa-f:.]+\\]|[^\\s:/\\[\\]]*):\\d{1,5}$", means: "`host:port` or `:port`" },
  headerName: { source: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", means: "a valid header name" },
  headerKey: { source: "^[!-~]+$", means: "printable ASCII without spaces, as a header can carry it" },
  headerText: { source: "^[ -~]+$", means: "printable ASCII, as a header can carry it" },
  /** A browser leaves out the default port. Any other spelling would never match what it sends. */
  origin: {
    source:
      "^(?:\\*|(?!https://.*:443$|http://.*:80$)[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\\[[0-9a-f:.]+\\])(?::\\d{1,5})?)$",
    means:
      "`*`, or an origin as a browser sends it, like https://app.example:8443: in lower case, without a path, a slash at its end, or the default port",
  },
  order: {
    source: `^(?:slot-seconds|fifo|budget:${NAME.source.slice(1, -1)})$`,
    means: '"slot-seconds", "fifo", or "budget:" and the name of a budget',
  },
  httpUrl: { source: "^https?://[^\\s]+$", means: "an address that begins with http:// or https://" },
} as const;
