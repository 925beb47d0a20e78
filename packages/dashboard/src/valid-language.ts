/**
 * A browser started in the POSIX locale calls its language `en-US@posix`, which `Intl` refuses, and the chart library
 * asks for it while it loads. Imported before everything else.
 */
try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en" });
}
