/** Tests run from the sources of every package, without a build: this export condition is set in each package.json. */
export const conditions = ["@slotkeeper/source", "node", "default"];
