// @ts-check
// The live region of every page, which is there from the start; a dialog has one of its own.

import { byId } from "./dom.js";

/**
 * Says something when the reader has finished.
 * @param {string} text
 */
export function say(text) {
  // Readers do not hear what lies below a dialog.
  const region = [...document.querySelectorAll("dialog[open] .said")].at(-1) ?? byId("said");
  region.textContent = "";
  // A text that is the same as before would not be a change.
  requestAnimationFrame(() => (region.textContent = text));
}
