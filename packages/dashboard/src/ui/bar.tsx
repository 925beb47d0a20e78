interface BarProps {
  /** From 0 to 1; more counts as 1. */
  readonly share: number;
  readonly isFull?: boolean;
}

export function Bar({ share, isFull = false }: BarProps) {
  return (
    <span class="bar" aria-hidden="true">
      <i data-full={isFull} style={{ width: `${Math.min(1, share) * 100}%` }} />
    </span>
  );
}
