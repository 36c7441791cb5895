// @ts-check
// Fields of forms that modules draw.

import { el } from "../base/dom.js";
import { act, field } from "../base/form.js";
import { t } from "../base/i18n.js";
import { reveal } from "../base/page.js";
import { askBeforeLeaving } from "../base/session.js";

/** @typedef {import("../base/dom.js").Child} Child */

/**
 * A field for a password, which can be shown.
 * @param {string} name
 * @param {string} label
 * @param {"current-password" | "new-password"} autocomplete
 * @param {Child} [hint]
 */
export function passwordField(name, label, autocomplete, hint) {
  const control = el("input", { id: name, name, type: "password", autocomplete, required: true });
  const show = el("button", { type: "button", class: "reveal", "aria-label": t("password.show") });
  const box = field(label, control, { hint, beside: show, box: "with-button" });
  reveal(show, control);
  return box;
}

/**
 * @param {string} name
 * @param {[value: string, text: string][]} options
 * @param {{ value?: string, [attribute: string]: unknown }} [attributes]
 */
export function select(name, options, { value, ...attributes } = {}) {
  const items = options.map(([one, text]) =>
    el("option", { value: one, selected: one === value }, text),
  );
  return el("select", { name, autocomplete: "off", ...attributes }, ...items);
}

/**
 * A box to tick, with its label behind it. As a `switch` it is on or off at once.
 * @param {string} name
 * @param {string} label
 * @param {{ checked?: boolean, isSwitch?: boolean, hint?: Child, [attribute: string]: unknown }}
 *   [how]
 */
export function checkbox(
  name,
  label,
  { checked = false, isSwitch = false, hint, ...attributes } = {},
) {
  const hintId = `${name}-hint`;
  const role = isSwitch ? { role: "switch", class: "switch" } : {};
  const control = el("input", {
    id: name,
    name,
    type: "checkbox",
    checked,
    ...role,
    "aria-describedby": hint && hintId,
    ...attributes,
  });
  return el(
    "div",
    { class: "field tick" },
    control,
    el("label", { for: control.id }, label),
    hint && el("p", { class: "hint", id: hintId }, hint),
  );
}

/**
 * @param {string} text
 * @param {Record<string, unknown>} [attributes]
 */
export function button(text, attributes = {}) {
  return el("button", { type: "button", class: "secondary", ...attributes }, text);
}

/**
 * A button that does its work once at a time, and says `busy` meanwhile; `how` is as of `act`.
 * @param {string} text
 * @param {Record<string, unknown>} attributes
 * @param {() => unknown} work
 * @param {Parameters<typeof act>[3] & { busy?: string }} [how]
 */
export function actButton(text, attributes, work, { busy = t("one_moment"), ...how } = {}) {
  const node = button(text, attributes);
  node.addEventListener("click", () => act(node, busy, work, how));
  return node;
}

/**
 * The last line of a form.
 * @param {string} text of the button that sends it
 * @param {...Child} others
 */
export function submitLine(text, ...others) {
  return el(
    "div",
    { class: "form-actions" },
    el("button", { type: "submit", class: "primary" }, text),
    ...others,
  );
}

/**
 * Asks before a page is left on which something was typed into a form, other than a password.
 * Returns what is called when a form is saved that stays; others are drawn anew.
 * @param {HTMLFormElement} form
 */
export function warnOfLoss(form) {
  let isChanged = false;
  form.addEventListener("input", ({ target }) => {
    if (!(target instanceof HTMLInputElement && target.type === "password")) isChanged = true;
  });
  askBeforeLeaving(() => isChanged && form.isConnected && !form.hidden);
  return () => {
    isChanged = false;
  };
}
