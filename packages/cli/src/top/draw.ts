import { fitted } from "../table.ts";
import { openHostLines } from "./draw-host.ts";
import { hostLines, type Line } from "./draw-hosts.ts";
import type { Snapshot } from "./read-service.ts";
import { countOf, spanOf } from "./terminal-text.ts";
import type { TopModel } from "./top-model.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** The whole picture, exactly as high as the terminal. */
export function draw(model: TopModel, url: string, { columns, rows }: Size): Line[] {
  const head = headLines(model, url, columns);
  const room = Math.max(1, rows - head.length - 1);
  const body = bodyLines(model, columns, room).slice(0, room);
  const empty = Array.from({ length: room - body.length }, () => ({ text: "" }));
  return [...head, ...body, ...empty, { text: fitted(helpText(model), columns), look: "quiet" as const }].slice(
    0,
    rows,
  );
}

function headLines(model: TopModel, url: string, columns: number): Line[] {
  const { snapshot, problem } = model;
  const time = snapshot === undefined ? "" : new Date(snapshot.state.at).toLocaleTimeString("en-GB");
  const title: Line = { text: fitted(`slotkeeper top  ${url}  ${time}`, columns), look: "title" };
  const status: Line =
    problem === ""
      ? { text: fitted(snapshot === undefined ? "Connecting…" : totalsText(snapshot), columns) }
      : { text: fitted(problem, columns), look: "warning" };
  return [title, status, { text: "" }];
}

function bodyLines(model: TopModel, columns: number, room: number): Line[] {
  const { snapshot, open } = model;
  if (snapshot === undefined) return [];
  return open === undefined ? hostLines(model, columns, room) : openHostLines(snapshot, open, columns, room);
}

/** The numbers of all hosts, for the picture's head and for output without a terminal. */
export function totalsText({ state, history, open }: Snapshot): string {
  const of = open?.history ?? history;
  const inFlight = state.hosts.reduce((sum, host) => sum + host.inFlight, 0);
  const limit = state.hosts.reduce((sum, host) => sum + (host.limit ?? 0), 0);
  const [half, most] = [lately(of.waitP50Ms, of.stepMs), lately(of.waitP95Ms, of.stepMs)];
  const steps = Math.round(60_000 / of.stepMs);
  const minute = (counts: readonly number[]) => counts.slice(-steps).reduce((sum, count) => sum + count, 0);
  const rejected = `${countOf(minute(of.timeout))} timed out, ${countOf(minute(of.throttled))} breaker open, ${countOf(minute(of.overloaded))} queue full`;
  const slots = open === undefined ? `${countOf(inFlight)} of ${countOf(limit)} slots in use   ` : "";
  const waiting = open === undefined ? `${countOf(state.sessions["pending"] ?? 0)} waiting   ` : "";
  return `${slots}${waiting}${ratePerSecond(of.granted, of.stepMs)} grants/s   wait p50 ${half} p95 ${most}   last minute: ${rejected}`;
}

/** The rate over three whole steps. */
function ratePerSecond(counts: readonly number[], stepMs: number): string {
  const whole = counts.slice(-4, -1);
  return (whole.reduce((sum, count) => sum + count, 0) / ((whole.length * stepMs) / 1000)).toFixed(1);
}

function lately(values: readonly (number | null)[], stepMs: number): string {
  const known = values.slice(-Math.ceil(60_000 / stepMs)).findLast((value) => value !== null);
  return known === undefined || known === null ? "-" : spanOf(known);
}

function helpText({ isTyping, search, open, sort }: TopModel): string {
  if (isTyping) return `Search: ${search}▏  Enter keeps it, Esc clears it`;
  if (open !== undefined) return "Esc back   q quit";
  const found = search === "" ? "/ search" : `/ search (${search})`;
  return `↑↓ choose   Enter open   s sort (by ${sort})   r reverse   ${found}   q quit`;
}
