// How the documentation is searched, at build time and in the browser.
export const SEARCH_OPTIONS = {
  fields: ["title", "page", "text"],
  storeFields: ["title", "page"],
  searchOptions: {
    boost: { title: 4, page: 2 },
    prefix: true,
    fuzzy: (term) => (term.length > 4 ? 0.2 : false),
    combineWith: "AND",
  },
};
