/**
 * The control plane did not do what was asked.
 *   refused      it answered that it will not (4xx): what was sent was not taken
 *   unanswered   no answer, or one that does not say: it may have been taken all the same
 */
export class ControllerError extends Error {
  override readonly name = "ControllerError";
  /** Whether the controller refused, or its answer is missing. */
  readonly kind: "refused" | "unanswered";
  /** The HTTP status; undefined: there was no answer. */
  readonly status: number | undefined;

  constructor(kind: ControllerError["kind"], message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}
