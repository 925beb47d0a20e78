/** The environment for processes of the service, without the settings of the machine that runs the tests. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SLOTKEEPER_") && name !== "NODE_ENV");
  return Object.fromEntries(kept);
}
