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
