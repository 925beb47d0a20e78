import { unitsOf } from "@slotkeeper/protocol";
import { count, duration, visible } from "../../format.ts";
import type { HostState } from "../../model/host-watch.ts";
import { Bar } from "../../ui/bar.tsx";
import { Card } from "../../ui/card.tsx";

type KeyState = HostState["keys"][number];
type BudgetState = KeyState["budgets"][number];

/** The state view has more. */
const SHOWN = 10;

/** The values of the host's keys with the most slots and waiters: what they hold, and what is left of their budgets. */
export function BusiestKeys({ host: { keys } }: { host: HostState }) {
  if (keys.length === 0) return null;
  return (
    <Card name="keys" title="Busiest keys" note="Requests with the same value share its slots and budgets.">
      <table class="keys">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">In use</th>
            <th scope="col">Waiting</th>
            <th scope="col">Budgets</th>
          </tr>
        </thead>
        <tbody>
          {keys.slice(0, SHOWN).map((one) => (
            <KeyRow key={`${one.key} ${one.value}`} one={one} />
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function KeyRow({ one: { key, value, inFlight, slots, waiting, isShadow, budgets } }: { one: KeyState }) {
  return (
    <tr>
      <th scope="row">
        <span class="quiet">{key}</span> <bdi>{visible(value)}</bdi>{" "}
        {isShadow ? (
          <span class="badge quiet" title="Counted, but no request waits for its slots">
            shadow
          </span>
        ) : null}
      </th>
      <td>
        {count(inFlight)}
        {slots === undefined ? null : <span class="quiet"> of {count(slots)}</span>}
        {slots === undefined ? null : <Bar share={inFlight / slots} isFull={inFlight >= slots} />}
      </td>
      <td>{count(waiting)}</td>
      <td>
        {budgets.map((budget) => (
          <KeyBudget key={budget.name} budget={budget} />
        ))}
      </td>
    </tr>
  );
}

function KeyBudget({ budget: { name, available, burst, limit, fullInMs } }: { budget: BudgetState }) {
  const isInDebt = available < 0;
  return (
    <div class="key-budget" title={fullInMs === 0 ? "full" : `full in ${duration(fullInMs)}`}>
      {name} {isInDebt ? `${unitsOf(-available)} in debt` : unitsOf(available)}
      {isInDebt ? null : <span class="quiet"> of {unitsOf(burst)} left</span>}
      <Bar share={isInDebt ? -available / limit : available / burst} isFull={isInDebt} />
    </div>
  );
}
