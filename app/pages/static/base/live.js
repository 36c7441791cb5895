// @ts-check
// The two live regions of every page, which are there from the start.

import { byId } from "./dom.js";

/**
 * Says something when the reader has finished.
 * @param {string} text
 */
export function say(text) {
  put("said", text);
}

/**
 * Says something at once.
 * @param {string} text
 */
export function alarm(text) {
  put("alarm", text);
}

/**
 * @param {string} id
 * @param {string} text
 */
function put(id, text) {
  const region = byId(id);
  region.textContent = "";
  // A text that is the same as before would not be a change.
  requestAnimationFrame(() => (region.textContent = text));
}
