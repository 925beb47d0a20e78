/** A configuration that cannot be used. `problems` has all of them, each a sentence with its path and its origin. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** All problems, each a sentence with its path and its origin. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The configuration has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:\n  ${problems.join("\n  ")}`,
    );
    this.problems = problems;
  }
}

/**
 * A call to the control plane failed.
 *   refused      the controller refused it (4xx): it did not accept what was sent
 *   unanswered   no answer, or an unclear one: it may have accepted what was sent
 */
export class ControllerError extends Error {
  override readonly name = "ControllerError";
  /** Whether the controller refused the call, or did not answer it. */
  readonly kind: "refused" | "unanswered";
  /** The HTTP status; `undefined` if there was no answer. */
  readonly status: number | undefined;

  constructor(kind: ControllerError["kind"], message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}
