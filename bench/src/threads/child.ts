/** `node child.js ID OPERATIONS`: measures one subject and prints one number. */
import { subjects } from "./subjects.ts";

const [, , id = "", operations = ""] = process.argv;
const subject = subjects[id];
if (subject === undefined)
  throw new TypeError(`Expected a subject among ${Object.keys(subjects).join(", ")}, got ${id}`);
console.log(await subject.measure(Number(operations)));
