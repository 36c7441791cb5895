// @ts-check
// Files that the service makes for a page.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";

const KEPT_MS = 60_000; // the browser reads it after the click

/**
 * Calls what is answered by a file.
 * @template {import("../../types").Method} M
 * @template {import("../../types").Path<M>} P
 * @param {M} method
 * @param {P} path
 * @param {import("../../types").Options<M, P>} [options]
 * @returns {Promise<Blob>}
 * @throws {import("../base/api.js").Refusal}
 */
export function callForFile(method, path, options = {}) {
  return /** @type {Promise<any>} */ (
    call(method, path, /** @type {any} */ ({ ...options, asBlob: true }))
  );
}

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
