import { classOf, type Demand } from "@slotkeeper/protocol";
import { type HostStore, MemoryStore } from "@slotkeeper/queue";
import {
  Book,
  type DecideContext,
  decide,
  type Input,
  type Note,
  type Outcome,
  policyOfAccount,
} from "@slotkeeper/queue/internals";
import { missingAt } from "slotkeeper/parts";
import { ReferenceBook } from "./reference-book.ts";

/**
 * The two subjects of the comparison behind one interface. Only this file reads their books: what it shows is what
 * clients can see, so a book may change its records without a change of the comparison.
 */

/** A host as its clients see it. Fences show the order of the grants. */
export interface View {
  readonly slots: number;
  readonly first: string | undefined;
  /** What can be charged to each budget. */
  /** What is missing from budgets that are not full. */
  readonly budgets: readonly Spent[];
  readonly leases: readonly LeaseView[];
  readonly offers: readonly OfferView[];
  readonly waiters: readonly WaiterView[];
  readonly ends: readonly EndView[];
  readonly breaker: { readonly openedAt: number | undefined; readonly code: number };
}

interface OfferView {
  readonly session: string;
  readonly instance: string;
  readonly lapsesAt: number;
  readonly width: number;
  readonly class: string;
}

interface LeaseView {
  readonly session: string;
  readonly bucket: string;
  readonly instance: string;
  readonly fence: number;
  readonly grantedAt: number;
  readonly endsAt: number;
  readonly isReleased: boolean;
  readonly isProbe: boolean;
  readonly width: number;
  readonly class: string;
}

interface WaiterView {
  readonly session: string;
  readonly bucket: string;
  readonly instance: string;
  readonly isInside: boolean;
  readonly awayAt: number | undefined;
  readonly deadlineAt: number;
  readonly demand: Demand | undefined;
}

interface EndView {
  readonly session: string;
  readonly end: string;
  readonly keepUntil: number;
  readonly code: number | undefined;
  readonly retryAt: number | undefined;
}

interface Decided {
  readonly outcomes: readonly Outcome[];
  readonly notes: readonly Note[];
  readonly isForgotten: boolean;
}

/** A host that decides. */
export interface Host {
  decide(inputs: readonly Input[], context: DecideContext): Decided | Promise<Decided>;
  view(now: number): View;
  /** The slot tokens, by session. */
  tokens(): ReadonlyMap<string, string>;
}

/** How long after its deadline an end may still be asked for. */
export const GRACE_MS = 10_000;
const HOST = "h";
const MOST_CONFLICTS = 5;

/** The engine's `decide` on a book in memory. Now and then the book is built again from its records: it must not matter. */
export function memoryHost(decideOn: typeof decide = decide): Host {
  let book: Book | undefined;
  let commits = 0;
  return {
    decide(inputs, context) {
      book ??= new Book(HOST, context.now);
      const { outcomes, notes, isForgotten } = decideOn(book, inputs, context);
      if (book.isChanged) book.keep(`${++commits}.x`);
      if (isForgotten || book.limits === undefined) book = undefined;
      else if (commits % 8 === 7) book = Book.of(HOST, book.tag, book.image());
      return { outcomes, notes, isForgotten };
    },
    view: (now) => viewOf(book, now),
    tokens: () => tokensOf(book),
  };
}

/** What is wrong with the store of all instances, or of one. */
interface StorePlant {
  readonly store?: (store: HostStore) => HostStore;
  readonly instanceStore?: (store: HostStore, instance: string) => HostStore;
}

/** The engine's `decide` on books that the instances read from a store and commit to it: shows planted bugs of the store. */
export function storedHost(plant: StorePlant = {}): Host {
  let [now, commits] = [0, 0];
  let book: Book | undefined;
  const clock = { now: () => now, setTimer: () => undefined, clearTimer: () => undefined };
  const memory = new MemoryStore({ clock, isShared: true });
  const store = plant.store?.(memory) ?? memory;
  return {
    async decide(inputs, context) {
      ({ now } = context);
      const { instance } = context;
      const own = plant.instanceStore?.(store, instance) ?? store;
      for (let conflicts = 0; conflicts < MOST_CONFLICTS; conflicts++) {
        const { tag, tail } = await own.read(HOST, undefined);
        const image = tail.kind === "book" ? tail.book : undefined;
        book = image === undefined ? new Book(HOST, now) : Book.of(HOST, tag, structuredClone(image));
        const { outcomes, notes, isForgotten, wake } = decide(book, inputs, context);
        if (!book.isChanged && !isForgotten) return { outcomes, notes, isForgotten };
        const changes = isForgotten ? { head: undefined, puts: [], dels: [] } : book.changes();
        const named = { host: HOST, instance, base: book.tag, tag: `${++commits}.x` };
        const reply = await own.commit({ ...named, now: book.now, changes, wake, conflicts, hasOthers: true });
        if (reply.isOk && isForgotten) book = undefined;
        if (reply.isOk) return { outcomes, notes, isForgotten };
      }
      throw new Error(`The store refused ${MOST_CONFLICTS} commits`);
    },
    view: (at) => viewOf(book, at),
    tokens: () => tokensOf(book),
  };
}

export function referenceHost(): Host {
  let book = new ReferenceBook();
  return {
    decide(inputs, context) {
      const decided = book.decide(inputs, context);
      if (decided.isForgotten) book = new ReferenceBook();
      return decided;
    },
    view: (now) => viewOfReference(book, now),
    tokens: () => new Map(book.slots.flatMap(({ session, token }) => (token === undefined ? [] : [[session, token]]))),
  };
}

function tokensOf(book: Book | undefined): ReadonlyMap<string, string> {
  return new Map([...(book?.all("lease") ?? [])].map(({ session, key }) => [session, key]));
}

function viewOf(book: Book | undefined, now: number): View {
  if (book?.limits === undefined) return EMPTY;
  const { openedAt, code } = book.head.breaker;
  return {
    slots: book.head.slots,
    first: book.head.first,
    budgets: [...book.all("budget")]
      .filter(({ key }) => policyOfAccount(book.policy, key) !== undefined)
      .map(({ key, level, ...refill }): Spent => [key, rounded(missingAt(level, refill, now))])
      .filter(([, missing]) => missing > 0)
      .toSorted(byText),
    leases: [...book.all("lease")]
      .map(({ session, bucket, instance, fence, grantedAt, endsAt, isReleased, isProbe, width, charge }) => {
        const asked = { width, class: classOf(charge?.asked) };
        return { session, bucket, instance, fence, grantedAt, endsAt, isReleased, isProbe, ...asked };
      })
      .toSorted((a, b) => a.fence - b.fence),
    offers: [...book.all("offer")]
      .map(({ key: session, instance, lapsesAt, width, charge }) => {
        return { session, instance, lapsesAt, width, class: classOf(charge?.asked) };
      })
      .toSorted(bySession),
    waiters: [...book.all("waiter")]
      .map(({ key: session, bucket, instance, isInside, awayAt, deadlineAt, demand }) => {
        return { session, bucket, instance, isInside, awayAt, deadlineAt, demand };
      })
      .toSorted(bySession),
    ends: [...book.all("ending")]
      .filter(({ keepUntil }) => keepUntil + GRACE_MS > now)
      .map(({ key: session, end, keepUntil, code, retryAt }) => ({ session, end, keepUntil, code, retryAt }))
      .toSorted(bySession),
    breaker: { openedAt, code: openedAt === undefined ? 0 : code },
  };
}

function viewOfReference(book: ReferenceBook, now: number): View {
  if (book.given === undefined) return EMPTY;
  const { openedAt, code } = book.breaker;
  const leases = book.slots.filter(({ token }) => token !== undefined);
  return {
    slots: book.policy.slots,
    first: book.first,
    budgets: Object.entries(book.budgets)
      .filter(([account]) => book.budgetPolicy(account) !== undefined)
      .map(([account, budget]): Spent => [account, rounded(budget.missing(now))])
      .filter(([, missing]) => missing > 0)
      .toSorted(byText),
    leases: leases
      .map(({ session, bucket, instance, fence, since: grantedAt, endsAt, isReleased, isProbe, width, demand }) => {
        const asked = { width, class: classOf(demand) };
        return { session, bucket, instance, fence, grantedAt, endsAt, isReleased, isProbe, ...asked };
      })
      .toSorted((a, b) => a.fence - b.fence),
    offers: book.slots
      .filter((slot) => !leases.includes(slot))
      .map(({ session, instance, endsAt: lapsesAt, width, demand }) => {
        return { session, instance, lapsesAt, width, class: classOf(demand) };
      })
      .toSorted(bySession),
    waiters: book.waiters
      .map(({ session, bucket, instance, isInside, awayAt, deadlineAt, demand }) => {
        return { session, bucket, instance, isInside, awayAt, deadlineAt, demand };
      })
      .toSorted(bySession),
    ends: book.ends
      .filter(({ keepUntil }) => keepUntil + GRACE_MS > now)
      .map(({ session, end, keepUntil, throttle }) => {
        return { session, end, keepUntil, code: throttle?.code, retryAt: throttle?.retryAt };
      })
      .toSorted(bySession),
    breaker: { openedAt, code: openedAt === undefined ? 0 : code },
  };
}

const EMPTY: View = {
  slots: 0,
  first: undefined,
  budgets: [],
  leases: [],
  offers: [],
  waiters: [],
  ends: [],
  breaker: { openedAt: undefined, code: 0 },
};

type Spent = readonly [account: string, missing: number];

function byText([a]: Spent, [b]: Spent): number {
  return a < b ? -1 : 1;
}

function bySession(a: { readonly session: string }, b: { readonly session: string }): number {
  return a.session < b.session ? -1 : 1;
}

/** Sums of fractions have rounding errors. */
function rounded(amount: number): number {
  return Math.round(amount * 1e3) / 1e3 + 0;
}
