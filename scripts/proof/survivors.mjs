// Changes that no test finds, by the reason why that is acceptable. `npm run mutate -- --survivors` prints them in this form.

export const EXPLAINED = {};
