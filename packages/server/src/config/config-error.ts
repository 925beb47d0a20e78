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
