import { crc32 } from "node:zlib";

/**
 * The format of the journal file: a first line, then frames. A frame is one write and one sync. It has a header line
 * with its number, the time, the length and the checksum of the entries, and a checksum of the header itself; then the
 * entries, one line of JSON each. It is text, so that a person can read it. It contains no NUL, so that a sector that
 * never reached the disk is visible.
 *
 * FRAME1  `readFrames(prefix)` returns exactly the frames that are complete in the prefix, for any cut except inside
 *     the first frame. The first frame is never incomplete, because the file appears by a rename.
 * FRAME2  A changed byte is an error and never yields other frames.
 * FRAME3  Frames are returned in the order of writing, without gaps: they are numbered from 1.
 *
 * Torn or damaged? A frame is written only after the previous one is on the disk, and answers wait for it. So only the
 * last frame can be torn, and no answer depended on it: it is dropped. It is torn if the file ends inside it, or if a
 * whole sector of it, or its part of one, is NUL (the size may reach the disk before the contents). Everything else is
 * damage to data that was promised. Cost: O(bytes). The sector rule comes from the write-ahead log of etcd.
 */
export interface Frame {
  readonly number: number;
  /** The time of the clock of the writer. */
  readonly at: number;
  /** The lines of the entries, each with its line end. */
  readonly body: string;
}

/** The intact part of a file. */
export interface Frames {
  readonly frames: readonly Frame[];
  /** The size of an incomplete last frame, which was dropped. */
  readonly tornBytes: number;
}

/** Names the position and the kind of the damage. */
export class FrameDamage extends Error {
  readonly offset: number;

  constructor(offset: number, damage: string) {
    super(damage);
    this.offset = offset;
  }
}

/** Not damage: the file is a journal of another format, or not a journal at all. */
export class OtherFormat extends FrameDamage {
  /** The number in its first line; `undefined` if it is not a journal. */
  readonly format: number | undefined;

  constructor(format: number | undefined, damage: string) {
    super(0, damage);
    this.format = format;
  }
}

/** The format that this version reads and writes. */
export const FORMAT = 2;
const TITLE = "slotkeeper-journal ";
const FIRST_LINE = `${TITLE}${FORMAT}\n`;
const ANY_FIRST_LINE = new RegExp(`^${TITLE}(\\d{1,9})\n`);
const HEADER = /^=(\d{1,15}) (\d{1,15}) (\d{1,15}) ([0-9a-f]{8}) ([0-9a-f]{8})$/;
const LONGEST_HEADER = 70;
const SECTOR = 512;

/** The first line of a journal. */
export function encodeFirstLine(): Buffer {
  return Buffer.from(FIRST_LINE);
}

/** One entry as bytes, with its length and checksums. */
export function encodeFrame({ number, at, body }: Frame): Buffer {
  const bytes = Buffer.from(body);
  const head = `=${number} ${Math.max(0, Math.floor(at))} ${bytes.length} ${checksum(bytes)}`;
  return Buffer.concat([Buffer.from(`${head} ${checksum(head)}\n`), bytes]);
}

/** Throws `FrameDamage`. */
export function readFrames(file: Uint8Array): Frames {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length === 0) return { frames: [], tornBytes: 0 };
  checkFirstLine(bytes);
  const frames: Frame[] = [];
  let offset = FIRST_LINE.length;
  while (offset < bytes.length) {
    const found = readFrame(bytes, offset, frames.length + 1);
    if (found === undefined) break;
    frames.push(found.frame);
    offset = found.end;
  }
  if (frames.length === 0) throw new FrameDamage(0, "its first frame is not whole");
  return { frames, tornBytes: bytes.length - offset };
}

/**
 * If only the title or the frames after it are correct, the first line is damaged. Without either, the file never was a
 * journal.
 */
function checkFirstLine(bytes: Buffer): void {
  const start = bytes.toString("latin1", 0, LONGEST_HEADER);
  if (start.startsWith(FIRST_LINE)) return;
  const damage = `it does not begin with ${JSON.stringify(FIRST_LINE.trim())}`;
  const [, format] = ANY_FIRST_LINE.exec(start) ?? [];
  if (format !== undefined) throw new OtherFormat(Number(format), damage);
  if (start.startsWith(TITLE) || isFollowed(bytes, 0)) throw new FrameDamage(0, damage);
  throw new OtherFormat(undefined, damage);
}

/** Returns `undefined` if the frame is torn. */
function readFrame(bytes: Buffer, offset: number, number: number): { frame: Frame; end: number } | undefined {
  const header = readHeader(bytes, offset);
  if (header === undefined) {
    const isCut = bytes.length - offset < LONGEST_HEADER && bytes.indexOf("\n", offset) === -1;
    return tornOr(bytes, offset, bytes.length, isCut, "the header of a frame is broken");
  }
  const end = header.bodyAt + header.length;
  if (end > bytes.length) return tornOr(bytes, offset, bytes.length, true, "");
  const body = bytes.subarray(header.bodyAt, end);
  if (checksum(body) !== header.sum) return tornOr(bytes, offset, end, false, "the checksum of a frame is wrong");
  if (header.number !== number) {
    throw new FrameDamage(offset, `frame ${header.number} stands where frame ${number} should`);
  }
  return { frame: { number, at: header.at, body: body.toString() }, end };
}

function readHeader(bytes: Buffer, offset: number) {
  const lineEnd = bytes.indexOf("\n", offset);
  if (lineEnd === -1 || lineEnd - offset > LONGEST_HEADER) return undefined;
  const line = bytes.toString("latin1", offset, lineEnd);
  const match = HEADER.exec(line);
  if (match === null || checksum(line.slice(0, -9)) !== match[5]) return undefined;
  const [number = 0, at = 0, length = 0] = match.slice(1, 4).map(Number);
  return { number, at, length, sum: match[4], bodyAt: lineEnd + 1 };
}

function tornOr(bytes: Buffer, from: number, to: number, isCut: boolean, damage: string): undefined {
  const isTorn = isCut || (hasEmptySector(bytes, from, to) && !isFollowed(bytes, from));
  if (!isTorn) throw new FrameDamage(from, damage);
}

/**
 * Whether another frame follows: then this one was on the disk. Entries are JSON, so none of their lines looks like a
 * header.
 */
function isFollowed(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf("\n=", from); at !== -1; at = bytes.indexOf("\n=", at + 1)) {
    if (readHeader(bytes, at + 1) !== undefined) return true;
  }
  return false;
}

function hasEmptySector(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; ) {
    const next = Math.min(to, (Math.floor(at / SECTOR) + 1) * SECTOR);
    if (bytes.subarray(at, next).every((byte) => byte === 0)) return true;
    at = next;
  }
  return false;
}

function checksum(data: string | Uint8Array): string {
  return crc32(data).toString(16).padStart(8, "0");
}
