// A job that hangs loses its slot, and the next one gets its turn.
import { Semaphore, SlotExpiredError } from "slotkeeper";

const printer = new Semaphore(1, { name: "printer", ttlMs: 50, abortOnExpiry: true });

const hung = printer.run((slot) => new Promise((_, fail) => slot.signal.addEventListener("abort", fail)));
const next = printer.run(() => "printed");

try {
  await hung;
} catch (error) {
  if (error instanceof SlotExpiredError) console.log(error.code); // SLOT_EXPIRED
}
console.log(await next); // printed
