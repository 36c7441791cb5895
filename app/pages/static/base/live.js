// @ts-check
// The live region of every page, which is there from the start.

import { byId } from "./dom.js";

/**
 * Says something when the reader has finished.
 * @param {string} text
 */
export function say(text) {
  const region = byId("said");
  region.textContent = "";
  // A text that is the same as before would not be a change.
  requestAnimationFrame(() => (region.textContent = text));
}
