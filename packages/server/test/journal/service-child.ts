/** `node child.mjs JOURNAL`: the service on a free port, which it prints. */
import { Service } from "@slotkeeper/server";

const [journal = ""] = process.argv.slice(2);
const service = await Service.start({
  file: undefined,
  environment: {},
  flags: {
    listen: "127.0.0.1:0",
    backend: { memory: { journal } },
    fairQueue: { pollIntervalMs: 50, pollWindowMs: 500 },
  },
  log: { write: () => {}, isJson: true, hasColours: false },
});
console.log(JSON.stringify({ url: service.url }));
