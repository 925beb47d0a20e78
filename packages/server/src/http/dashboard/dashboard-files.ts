import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The output folder of the build of `packages/dashboard`. The path is the same from `src` and from `dist`. */
const BUILT = fileURLToPath(new URL("../../../dist/dashboard", import.meta.url));

const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export type Encoding = "br" | "gzip" | "identity";

export interface DashboardFile {
  readonly type: string;
  /** The hash of the content before any encoding. */
  readonly hash: string;
  readonly bodies: { readonly [encoding in Encoding]?: Buffer };
}

/**
 * The files of the dashboard, in memory. They are read at the first request. Only files that exist then can be
 * requested, by their exact names, so no path leads out of the folder.
 */
export class DashboardFiles {
  readonly #folder: string;
  #files: ReadonlyMap<string, DashboardFile> | undefined;

  constructor(folder: string = BUILT) {
    this.#folder = folder;
  }

  /** `undefined` if the dashboard was not built. */
  get page(): DashboardFile | undefined {
    return this.#all().get("index.html");
  }

  /** A file whose name contains the hash of its content. */
  asset(name: string): DashboardFile | undefined {
    return this.#all().get(`assets/${name}`);
  }

  #all(): ReadonlyMap<string, DashboardFile> {
    this.#files ??= readBuild(this.#folder);
    return this.#files;
  }
}

function readBuild(folder: string): ReadonlyMap<string, DashboardFile> {
  const names = ["", "assets/"].flatMap((prefix) => {
    const directory = join(folder, prefix);
    return existsSync(directory) ? readdirSync(directory).map((name) => `${prefix}${name}`) : [];
  });
  const served = names.filter((name) => extname(name) in TYPES);
  return new Map(served.map((name) => [name, readFile(join(folder, name))]));
}

function readFile(path: string): DashboardFile {
  const identity = readFileSync(path);
  const packed = (extension: string) => (existsSync(path + extension) ? readFileSync(path + extension) : undefined);
  const [br, gzip] = [packed(".br"), packed(".gz")];
  return {
    type: TYPES[extname(path)] as string,
    hash: createHash("sha256").update(identity).digest("base64url").slice(0, 22),
    bodies: { identity, ...(br === undefined ? {} : { br }), ...(gzip === undefined ? {} : { gzip }) },
  };
}
