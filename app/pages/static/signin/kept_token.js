// @ts-check
// The token of a mailed link, taken out of the address before anything else happens.
//
// This tab keeps it, so that choosing another language, or loading the page again, does not lose it.

const KEY = "token";

/**
 * Returns the token of the address, else that which was kept when it was taken out; "" if none.
 * @param {string} token what the address has
 * @param {string} without the address without it, at which the kept one counts
 */
export function takeToken(token, without) {
  const here = window.location.pathname + window.location.search;
  if (!token) return here === without ? sessionStorage.getItem(KEY) ?? "" : "";
  sessionStorage.setItem(KEY, token);
  window.history.replaceState(null, "", without);
  return token;
}

/** It was used, or will never be accepted. */
export function dropToken() {
  sessionStorage.removeItem(KEY);
}
