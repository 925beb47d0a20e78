import { type BudgetState, refillWords, unitsOf } from "@slotkeeper/protocol";
import { duration, plural } from "../../format.ts";
import type { HostState, SessionState } from "../../model/host-watch.ts";
import { Bar } from "../../ui/bar.tsx";
import { Card } from "../../ui/card.tsx";

interface BudgetsProps {
  readonly host: HostState;
  /** The session whose wait is explained below. */
  readonly session: SessionState | undefined;
}

/** The budgets of the host as bars: what is left, how it refills, and debts. */
export function Budgets({ host: { budgets = [] }, session }: BudgetsProps) {
  if (budgets.length === 0) return null;
  return (
    <Card name="budgets" title="Budgets" note={`${plural(budgets.length, "budget")}, in the whole fleet`}>
      <ul class="meters">
        {budgets.map((budget) => (
          <Budget key={budget.name} budget={budget} isAwaited={session?.blockedBy === `budget:${budget.name}`} />
        ))}
      </ul>
    </Card>
  );
}

function Budget({ budget, isAwaited }: { budget: BudgetState; isAwaited: boolean }) {
  const { name, available, burst, limit, fullInMs, isShadow } = budget;
  const isInDebt = available < 0;
  // A debt is at most one limit.
  const share = isInDebt ? -available / limit : available / burst;
  return (
    <li class="meter" data-debt={isInDebt} data-awaited={isAwaited}>
      <p class="meter-head">
        <span class="meter-name">{name}</span>
        {isShadow ? (
          <span class="badge quiet" title="Charged and counted, but no request waits for it">
            shadow
          </span>
        ) : null}
        {isAwaited ? (
          <span class="badge load-queueing" title="The session below waits until this budget has refilled">
            awaited
          </span>
        ) : null}
        <span class="meter-left">
          {isInDebt ? `${unitsOf(-available)} in debt` : unitsOf(available)}
          {isInDebt ? null : <span class="quiet"> of {unitsOf(burst)} left</span>}
        </span>
      </p>
      <Bar share={share} />
      <p class="cell-times">
        <span>refills {refillWords(budget)}</span>
        <span>{fullInMs === 0 ? "full" : `full in ${duration(fullInMs)}`}</span>
      </p>
    </li>
  );
}
