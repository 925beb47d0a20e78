import type { Subject } from "../subject.ts";

interface SubjectModule {
  readonly subject: Subject;
}

/** Loaded one at a time, because a process under test must not even parse another library. */
const loaders: Readonly<Record<string, () => Promise<SubjectModule>>> = {
  slotkeeper: () => import("./slotkeeper.ts"),
  "async-mutex": () => import("./async-mutex.ts"),
  "async-sema": () => import("./async-sema.ts"),
  "await-semaphore": () => import("./await-semaphore.ts"),
  "@shopify/semaphore": () => import("./shopify-semaphore.ts"),
  "es-toolkit": () => import("./es-toolkit.ts"),
  "ts-semaphore": () => import("./ts-semaphore.ts"),
  effect: () => import("./effect.ts"),
  "p-limit": () => import("./p-limit.ts"),
  "p-queue": () => import("./p-queue.ts"),
  "@henrygd/queue": () => import("./henrygd-queue.ts"),
  cockatiel: () => import("./cockatiel.ts"),
  bottleneck: () => import("./bottleneck.ts"),
  "async-lock": () => import("./async-lock.ts"),
  "p-throttle": () => import("./p-throttle.ts"),
  limiter: () => import("./limiter.ts"),
  "rate-limiter-flexible": () => import("./rate-limiter-flexible.ts"),
};

export const subjectIds: readonly string[] = Object.keys(loaders);

export async function loadSubject(id: string): Promise<Subject> {
  const load = loaders[id];
  if (load === undefined) throw new TypeError(`Expected the id of a subject, got ${id}.`);
  return (await load()).subject;
}

/** For the harness: a library that does not load still gets its rows, and its own processes report the problem. */
export const describeSubject = (id: string): Promise<Subject> =>
  loadSubject(id).catch(() => ({ id, safety: [], lacks: {} }));
