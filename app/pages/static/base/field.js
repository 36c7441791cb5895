// @ts-check
// A field of a form.

import { el } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * A field with its label; `control` gets the id `name` unless it has one.
 * @param {string} label
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} control
 * @param {{ hint?: Child, beside?: Child, box?: string }} [more] `beside` stands to the right of
 *   the control, in a box of the class `box`
 */
export function field(label, control, { hint, beside, box: kind = "side-by-side" } = {}) {
  if (!control.id) control.id = control.name;
  const note = hint && el("p", { class: "hint", id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  const box = beside ? el("div", { class: kind }, control, beside) : control;
  return el("div", { class: "field" }, el("label", { for: control.id }, label), box, note);
}
