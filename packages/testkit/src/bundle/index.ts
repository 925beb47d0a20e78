/** `@slotkeeper/testkit/bundle`: code that uses the packages, from their sources, for hosts that are not the test process. */
export { type BundleSource, bundle, bundleTo, importedFiles } from "./bundle.ts";
export { withProgram } from "./with-program.ts";
