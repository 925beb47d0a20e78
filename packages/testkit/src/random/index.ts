/** `@slotkeeper/testkit/random`: the seeded random numbers of tests, simulations and benchmarks. */
export { Random } from "./random.ts";
