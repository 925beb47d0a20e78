/** A few words that the workers of a test share beside the semaphore. */
export type Board = Int32Array<SharedArrayBuffer>;

export const INSIDE = 0;
export const TWO_INSIDE = 1;
export const CALLS = 2;
export const GRANTS = 3;
export const FINISHED = 4;
export const JOB_COUNTS = 16;

export const newBoard = (): Board => new Int32Array(new SharedArrayBuffer(256));
