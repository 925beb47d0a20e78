import type { LogFields, Logger } from "@slotkeeper/server/portable";

/** Log lines as JSON on the console: Workers Logs and `wrangler tail` show them. The routes log no secrets. */
export const consoleLog: Logger = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => console.warn(line("warn", message, fields)),
  error: (message, fields) => console.error(line("error", message, fields)),
  audit: (action, fields) => console.log(line("info", `audit: ${action}`, fields)),
  isOn: (level) => level === "warn" || level === "error",
};

function line(level: string, msg: string, { error, ...fields }: LogFields = {}): string {
  const cause = error instanceof Error ? { error: `${error.name}: ${error.message}`, stack: error.stack } : {};
  return JSON.stringify({ level, msg, ...fields, ...cause });
}
