// Holding a slot for the rest of a block; also by hand, where a block does not fit.
import { Mutex } from "slotkeeper";

const mutex = new Mutex();

async function exclusive(): Promise<void> {
  using slot = await mutex.acquire();
  console.log("alone, with slot", slot.number);
} // released here, whatever happens

await exclusive();
const slot = mutex.tryAcquire(); // now or not at all
console.log(slot?.release(), slot?.release()); // true false: a second release frees no other slot
