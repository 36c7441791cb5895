// @ts-check
// What somebody else does to the same thing meanwhile: it is shown, and nothing typed is lost.

import { Refusal } from "../base/api.js";
import { mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */

/** Whether a change was refused since the thing is not as it was when it was drawn. */
export function isOutdated(/** @type {unknown} */ error) {
  return error instanceof Refusal && error.code === "conflict";
}

/**
 * Makes the changes of a form in the same form drawn anew. A field that somebody else has changed
 * too says what they have set it to.
 * @param {HTMLFormElement} from
 * @param {HTMLFormElement} to
 */
export function carryOver(from, to) {
  for (const field of to.querySelectorAll(".field")) {
    // An amount and its unit are one; what has no name is not sent.
    const controls = /** @type {Control[]} */ ([
      ...field.querySelectorAll(":is(input, select, textarea)[name]:not([name=''])"),
    ]);
    const before = controls.map(
      ({ name }) => /** @type {Control} */ (from.elements.namedItem(name)),
    );
    const [given, drawn, now] = [
      before.map(valueOf),
      before.map(drawnOf),
      controls.map(drawnOf),
    ].map(String);
    if (given === drawn) continue;
    controls.forEach((control, index) => copy(/** @type {Control} */ (before[index]), control));
    to.dispatchEvent(new Event("input")); // it is not saved
    if (now === drawn || now === given) continue;
    field.closest("details")?.setAttribute("open", "");
    const value = controls.map(drawnTextOf).join(" ");
    mark(
      /** @type {HTMLInputElement} */ (controls[0]),
      t("meanwhile.value", { value: value || t("settings.empty") }),
    );
  }
}

/**
 * Shows a refusal; what shows a state that is not any more is loaded again.
 * @param {unknown} error
 * @param {() => Promise<void>} reload
 */
export async function failedMeanwhile(error, reload) {
  showProblem(error);
  if (!(error instanceof Refusal) || ![400, 404, 409].includes(error.status)) return;
  try {
    await reload();
    if (error.code === "not_found") showNotice(t("list.gone"));
  } catch {
    // Why it was refused is on the page.
  }
}

/** @param {Control} control */
function valueOf(control) {
  return control instanceof HTMLInputElement && control.type === "checkbox"
    ? String(control.checked)
    : control.value;
}

/** What a control said when it was drawn. @param {Control} control */
function drawnOf(control) {
  if (control instanceof HTMLSelectElement) return drawnOption(control)?.value ?? "";
  return control instanceof HTMLInputElement && control.type === "checkbox"
    ? String(control.defaultChecked)
    : control.defaultValue;
}

/** @param {Control} control */
function drawnTextOf(control) {
  return control instanceof HTMLSelectElement
    ? (drawnOption(control)?.text ?? "")
    : drawnOf(control);
}

/** @param {HTMLSelectElement} control */
function drawnOption({ options }) {
  return [...options].find((one) => one.defaultSelected) ?? options[0];
}

/**
 * @param {Control} from
 * @param {Control} to
 */
function copy(from, to) {
  if (from instanceof HTMLInputElement && to instanceof HTMLInputElement) to.checked = from.checked;
  to.value = from.value;
}
