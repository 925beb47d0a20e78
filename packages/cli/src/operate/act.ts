import { createInterface } from "node:readline";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { serviceFailure } from "../service-failure.ts";
import { callOperator, type OperatorFlags } from "./call-operator.ts";

/** One action of an operator: what is asked, what is called, and what is printed after it. */
export interface Action {
  readonly question: string;
  readonly method: "POST" | "DELETE";
  readonly path: string;
  readonly body?: object;
  readonly done: () => Result | Promise<Result>;
}

interface Result {
  readonly text: string;
  readonly json: object;
}

/**
 * Plans the action, asks whether to do it, does it, and prints the result. `plan` may throw a `TypeError` for wrong
 * usage, or a `ServiceCallError`.
 */
export async function act(flags: OperatorFlags, plan: () => Promise<Action>): Promise<ExitCode> {
  const isJson = flags.json === true;
  try {
    if (flags.yes !== true) mustBeAnswerable();
    const { question, method, path, body, done } = await plan();
    if (flags.yes !== true && !(await isConfirmed(question))) {
      process.stderr.write("Nothing was changed.\n");
      return EXIT.failed;
    }
    await callOperator(flags, path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const { text, json } = await done();
    process.stdout.write(isJson ? `${JSON.stringify(json)}\n` : `${text}\n`);
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, isJson);
  }
}

/** A script that forgot `--yes` must not wait for an answer that never comes. */
function mustBeAnswerable(): void {
  if (process.stdin.isTTY && process.stderr.isTTY) return;
  throw new TypeError("Expected --yes: there is no terminal to ask on.");
}

async function isConfirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return /^y(es)?$/i.test(line.trim());
    return false;
  } finally {
    lines.close();
  }
}
