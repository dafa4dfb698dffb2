// The state of the page, kept in the fragment of its address: never sent to a server, and good to share.

/** Read the address: the view, and what it holds. */
export function readState() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, values: Object.fromEntries(new URLSearchParams(query)) };
}

/** Write the address; empty values are left out. */
export function writeState(view, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  history.replaceState(null, "", `#${view}${query ? `?${query}` : ""}`);
}
