// @ts-check
// Controls of settings that are lists: words to tick, and entries to type.

import { el, replace } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { button } from "../console/fields.js";
import { inOrder, labelOf, optionWord } from "./setting_words.js";

/** @import { Setting } from "./stored_settings.js" */

/** More than these are grouped, and shown when asked for. */
const FEW = 12;
/** What acts has a group of its own in the catalogue; all else is of the service. */
const GROUPS = ["user", "admin", "team"];
/** Whose order says something. */
const IN_ORDER = "pages_languages";

/**
 * Words to tick.
 * @param {Setting} setting
 * @param {string[]} before
 * @param {(value: string[]) => void} set
 */
export function ticks({ key, options }, before, set) {
  let chosen = before;
  const order = el("p", { class: "hint", "aria-live": "polite" });
  const showOrder = () => {
    order.textContent = t("settings.order", {
      names: inOrder(chosen.map((one) => optionWord(key, one))),
    });
    order.hidden = key !== IN_ORDER || chosen.length < 2;
  };
  const boxes = options.map(({ value }) =>
    el("input", {
      type: "checkbox",
      id: `${key}-${value}`,
      value,
      checked: chosen.includes(value),
    }),
  );
  const tell = () => {
    const ticked = boxes.filter((one) => one.checked).map((one) => one.value);
    // What was in some order stays in it.
    const first = key === IN_ORDER ? chosen : before;
    chosen = [
      ...first.filter((one) => ticked.includes(one)),
      ...ticked.filter((one) => !first.includes(one)),
    ];
    showOrder();
    set(chosen);
  };
  for (const box of boxes) box.addEventListener("change", tell);
  const lineOf = (/** @type {HTMLInputElement} */ box) =>
    el(
      "div",
      { class: "field tick" },
      box,
      el("label", { for: box.id }, optionWord(key, box.value)),
    );
  const groupOf = (/** @type {string} */ value) => {
    const named = options.find((one) => one.value === value)?.group ?? "";
    return GROUPS.includes(named) ? named : "service";
  };
  const lines =
    options.length > FEW
      ? [...GROUPS, "service"].map((name) => {
          const own = boxes.filter(({ value }) => groupOf(value) === name);
          return group(`${key}-all-${name}`, t(`action_group.${name}`), own, own.map(lineOf), tell);
        })
      : boxes.map(lineOf);
  showOrder();
  return el(
    "fieldset",
    { id: key, class: "ticks", tabindex: "-1" },
    el("legend", { class: "visually-hidden" }, labelOf({ key })),
    ...lines,
    order,
  );
}

/**
 * Some of the boxes, all of which can be ticked at once.
 * @param {string} id
 * @param {string} name
 * @param {HTMLInputElement[]} boxes
 * @param {HTMLElement[]} lines
 * @param {() => void} tell
 */
function group(id, name, boxes, lines, tell) {
  const every = el("input", { type: "checkbox", id });
  const words = el("span", { class: "hint" });
  const show = () => {
    const on = boxes.filter((one) => one.checked).length;
    words.textContent = t("settings.some", { on, all: boxes.length });
    every.checked = on === boxes.length;
    every.indeterminate = on > 0 && on < boxes.length;
  };
  every.addEventListener("change", () => {
    for (const box of boxes) box.checked = every.checked;
    show();
    tell();
  });
  for (const box of boxes) box.addEventListener("change", show);
  show();
  return el(
    "details",
    {},
    el("summary", {}, name, " ", words),
    el(
      "div",
      { class: "field tick" },
      every,
      el(
        "label",
        { for: id },
        t("settings.every"),
        el("span", { class: "visually-hidden" }, ` – ${name}`),
      ),
    ),
    ...lines,
  );
}

/**
 * Entries to type.
 * @param {Setting} setting
 * @param {string[]} value
 * @param {(value: string[]) => void} set
 */
export function entries({ key }, value, set) {
  const all = [...value];
  const lines = el("ul", { class: "rows" });
  const input = textInput(`${key}-new`, { id: key, autocapitalize: "none" });
  const add = () => {
    const entry = input.value.trim();
    if (!entry) return;
    if (!all.includes(entry)) all.push(entry);
    input.value = "";
    draw();
    set([...all]);
  };
  const remove = (/** @type {number} */ index) => {
    all.splice(index, 1);
    draw();
    set([...all]);
    input.focus();
  };
  const draw = () => {
    lines.hidden = all.length === 0;
    replace(
      lines,
      ...all.map((entry, index) =>
        el(
          "li",
          {},
          el("span", { class: "mono" }, entry),
          el(
            "button",
            {
              type: "button",
              class: "quiet",
              "aria-label": `${t("remove")}: ${entry}`,
              click: () => remove(index),
            },
            icon("close"),
          ),
        ),
      ),
    );
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    add();
  });
  input.addEventListener("blur", add); // what was typed is meant, even without the button
  draw();
  return el(
    "div",
    { class: "entries" },
    lines,
    el("div", { class: "side-by-side" }, input, button(t("settings.add"), { click: add })),
  );
}
