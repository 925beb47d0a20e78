// Holds a slot until the end of a block. Without a block, acquire and release by hand.
import { Mutex } from "slotkeeper";

const mutex = new Mutex();

async function exclusive(): Promise<void> {
  using slot = await mutex.acquire();
  console.log("alone, with slot", slot.number);
} // always released here

await exclusive();
const slot = mutex.tryAcquire(); // does not wait
console.log(slot?.release(), slot?.release()); // true false: a second release frees no other slot
