export { MemoryStore } from "./store/memory-store.ts";
