// @ts-check
// The token of a mailed link, taken out of the address before anything else happens.
//
// It is kept beside the address, in the state of this entry of the tab's history, so that choosing
// another language, or loading the page again, does not lose it.

/**
 * Returns the token of the address, else that which was kept when it was taken out; "" if none.
 * @param {string} token what the address has
 * @param {string} without the address without it
 * @returns {string}
 */
export function takeToken(token, without) {
  const { state } = window.history;
  if (!token) return state?.token ?? "";
  window.history.replaceState({ ...state, token }, "", without);
  return token;
}

/** It was used, or will never be accepted. */
export function dropToken() {
  window.history.replaceState({ ...window.history.state, token: "" }, "");
}
