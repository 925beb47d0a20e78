import type { IncomingMessage, ServerResponse } from "node:http";
import { PROBLEMS, type ProblemCode } from "@slotkeeper/protocol";
import type { FieldProblem } from "../validation/field-problem.ts";

export type Headers = { readonly [name: string]: string | number };

/** Prevents a browser from guessing another content type. */
export const NO_SNIFF = { "X-Content-Type-Options": "nosniff" } as const;

/** One request and its answer. */
export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The id in the `X-Request-Id` of the answer and in every log line about the request. */
  readonly id: string;
  /** The path without the query. */
  readonly path: string;
  /** The code of the problem document, if the answer was one. */
  problemCode: ProblemCode | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, id: string, path: string) {
    this.request = request;
    this.response = response;
    this.id = id;
    this.path = path;
  }

  json(body: object, headers?: Headers): void {
    this.send(200, "application/json", JSON.stringify(body), headers);
  }

  noContent(headers?: Headers): void {
    this.response.writeHead(204, { ...NO_SNIFF, "X-Request-Id": this.id, ...headers });
    this.response.end();
  }

  problem(code: ProblemCode, detail?: string, { errors, headers, reason }: ProblemMore = {}): void {
    const { status, title } = PROBLEMS[code];
    this.problemCode = code;
    const body = problemBody(code, { title, status, reason, detail, errors });
    this.send(status, PROBLEM_TYPE, body, headers);
  }

  /** Bytes that several answers share are not copied: callers that do not read cost one copy in all. */
  send(status: number, type: string, body: string | Buffer, headers?: Headers): void {
    const { request, response } = this;
    const bytes = Buffer.byteLength(body);
    const own = {
      "Content-Type": type,
      "Content-Length": bytes,
      "Cache-Control": "no-store",
      ...NO_SNIFF,
      "X-Request-Id": this.id,
    };
    response.writeHead(status, headers === undefined ? own : { ...own, ...headers });
    if (request.method !== "HEAD") writeAtOnce(response, body, bytes === body.length ? "latin1" : "utf8");
    response.end();
  }
}

/**
 * Writes head and body in one piece. `end(body)` would pass a second, empty piece to the system, which costs more than
 * the body (S1). A response whose caller has left has no socket.
 */
function writeAtOnce(response: ServerResponse, body: string | Buffer, encoding: "latin1" | "utf8"): void {
  response.socket?.cork();
  response.write(body, encoding);
  response.socket?.uncork();
}

interface ProblemMore {
  readonly errors?: readonly FieldProblem[];
  readonly headers?: Headers;
  /** The machine-readable reason of a code that has several. */
  readonly reason?: string;
}

/** The media type of problem documents. */
export const PROBLEM_TYPE = "application/problem+json";

export function problemBody(code: ProblemCode, { title, status, ...more }: ProblemParts): string {
  const type = `urn:slotkeeper:problem:${code.toLowerCase().replaceAll("_", "-")}`;
  return JSON.stringify({ type, title, status, code, ...more });
}

interface ProblemParts {
  readonly title: string;
  readonly status: number;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly errors?: readonly FieldProblem[] | undefined;
}
