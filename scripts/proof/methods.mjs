// The methods that look for bugs, in the order of the reliability page. `kind` is the name under which results are recorded.

/** `tries`: one sentence about what the method does. `misses`: what it cannot find. */
export const METHODS = [
  {
    kind: "simulate",
    name: "Simulator",
    command: "npm run simulate",
    tries:
      "Runs whole fleets with faults in virtual time. Invariants are checked after every step, and the independent checker judges what the clients saw.",
    misses: "Faults of PostgreSQL, of the network stack and of Node: the store and the clock are simulated.",
  },
  {
    kind: "checker",
    name: "Independent checker",
    command: "npm run planted",
    tries: "Judges calls and answers by the documentation alone. It shares no code with the engine.",
    misses: "What no client can see, such as a wrong counter.",
  },
  {
    kind: "reference",
    name: "Reference book",
    command: "npm run reference",
    tries: "Compares every decision with a second, naive implementation on random histories.",
    misses: "A mistake that both implementations share, and everything outside the decision.",
  },
  {
    kind: "model",
    name: "Model checking",
    command: "npm run model",
    tries:
      "Explores every state of small models of the algorithms: two instances with at most three sessions, and threads.",
    misses:
      "Differences between model and code, larger numbers, and rules that the models leave out: buckets, the breaker, deadlines.",
  },
  {
    kind: "mutation",
    name: "Mutation testing",
    command: "npm run mutate",
    tries: "Changes the code in small ways, and counts the changes that a test finds.",
    misses: "Code that is missing. Only the decision, the book, the order and the core of the library are measured.",
  },
  {
    kind: "fuzz",
    name: "Fuzzing",
    command: "npm run fuzz",
    tries: "Gives everything that takes input random and damaged input.",
    misses: "Wrong answers to valid input.",
  },
  {
    kind: "chaos",
    name: "Chaos",
    command: "npm run chaos",
    tries: "Breaks a real fleet on PostgreSQL. The independent checker judges what the clients saw.",
    misses: "Faults of several machines and of disks: the fleet runs on one machine.",
  },
  {
    kind: "soak",
    name: "Soak",
    command: "npm run soak",
    tries: "Puts mixed load with small faults on services that are not restarted, and measures what grows.",
    misses: "What grows only over days.",
  },
  { kind: "property", name: "Property tests", command: "npm test", tries: "", misses: "" },
  { kind: "hostile", name: "Tests that attack from outside", command: "npm test", tries: "", misses: "" },
];
