/** The system's error codes as the end of a sentence. PostgreSQL has a table of its own, with advice for databases. */
const WORDS: { readonly [code: string]: string } = {
  EACCES: "this user has no permission",
  EADDRINUSE: "another program listens there",
  EADDRNOTAVAIL: "this machine does not have this address",
  EAI_AGAIN: "the name cannot be resolved now",
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was closed",
  EHOSTUNREACH: "there is no route to this machine",
  EINVAL: "this is not a valid address",
  EISDIR: "it is a folder",
  EMFILE: "too many files are open",
  ENETUNREACH: "there is no route to this network",
  ENOENT: "it does not exist",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of its path is not a folder",
  ENOTFOUND: "no machine has this name",
  EPERM: "this user has no permission",
  EPIPE: "the connection was closed",
  EPROTO: "it does not use TLS: try http instead of https",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "it does not use TLS: try http instead of https",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not use TLS: try http instead of https",
  EROFS: "the file system is read-only",
  ETIMEDOUT: "there was no answer in time",
  TimeoutError: "there was no answer in time",
  UND_ERR_CONNECT_TIMEOUT: "there was no answer in time",
  UND_ERR_SOCKET: "the connection was closed",
};

const DEEPEST = 5;

/**
 * Why a call of the system or of `fetch` failed, in words: `nothing listens there`. If the error and its causes have no
 * known code, the message of the first cause.
 */
export function systemWords(error: unknown): string {
  let message = String(error);
  let here = error;
  for (let depth = 0; depth < DEEPEST && here instanceof Error; depth++) {
    const { code = "", name, cause } = here as NodeJS.ErrnoException;
    const words = WORDS[code] ?? WORDS[name];
    if (words !== undefined) return words;
    // `fetch failed` and an error for several addresses say nothing themselves.
    message = here.message === "" ? message : here.message;
    here = here instanceof AggregateError ? (here.errors as unknown[])[0] : cause;
  }
  return message.replace(/\.$/, "");
}
