/** For processes of the service: what the machine that runs the tests has set is not what they are about. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SLOTKEEPER_") && name !== "NODE_ENV");
  return Object.fromEntries(kept);
}
