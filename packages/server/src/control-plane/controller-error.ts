/**
 * The control plane did not do what was asked.
 *   refused      it answered that it will not (4xx): what was sent was not taken
 *   unanswered   no answer, or one that does not say: it may have been taken all the same
 */
export class ControllerError extends Error {
  override readonly name = "ControllerError";
  readonly kind: "refused" | "unanswered";
  readonly status: number | undefined;

  constructor(kind: ControllerError["kind"], message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}
