// @ts-check
// Files that the service makes for a page.

import { el } from "../base/dom.js";

const KEPT_MS = 60_000; // the browser reads it after the click

/**
 * Lets the browser save a file.
 * @param {Blob} file
 * @param {string} name
 */
export function saveFile(file, name) {
  const url = URL.createObjectURL(file);
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

/** Today as part of a file's name. */
export function today() {
  return new Date().toISOString().slice(0, 10);
}
