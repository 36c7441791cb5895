// @ts-check
// One setting: what it means, a control for its kind of value, and the way back to its default.

import { breakable, el, replace } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { button, select } from "../console/fields.js";
import { badge } from "../console/panel.js";
import { amountField } from "./amounts.js";
import { colorField } from "./color_field.js";
import { entries, ticks } from "./setting_lists.js";
import { defaultWords, helpOf, labelOf, optionWord } from "./setting_words.js";

/** @import { Kind } from "./amounts.js" */
/** @import { Value } from "./setting_drafts.js" */
/** @import { Setting } from "./stored_settings.js" */
/**
 * @typedef {(setting: Setting, value: Value | null) => boolean} Change returns whether there is a
 *   draft
 */

const COLOR = "pages_accent_color";

/**
 * @param {Setting} setting
 * @param {Value | null | undefined} draft undefined while it is as it is saved
 * @param {Change} change
 */
export function settingRow(setting, draft, change) {
  const { key, value_type: type, is_set: isSet } = setting;
  const row = el("section", { class: "setting", "aria-labelledby": `${key}-label` });
  const draw = (/** @type {Value | null | undefined} */ now) => {
    const isDefault = now === null || (now === undefined && !isSet);
    const value =
      now === null ? setting.default : (now ?? (setting.is_sensitive ? "" : setting.value));
    const stateOf = (/** @type {boolean} */ isDraft) =>
      isDraft ? badge(t("settings.draft"), "warn") : isSet && badge(t("settings.changed"));
    const state = el("span", {}, stateOf(now !== undefined));
    const set = (/** @type {Value} */ next) => replace(state, stateOf(change(setting, next)));
    const back = () => {
      change(setting, null);
      draw(null);
      document.getElementById(key)?.focus();
    };
    const help = helpOf(setting);
    const control = controlOf(setting, value, set);
    if (help) describe(control, key);
    const name = { id: `${key}-label`, class: "setting-name" };
    replace(
      row,
      el(
        "div",
        { class: "setting-about" },
        el(
          "div",
          { class: "setting-head" },
          type === "string_enum_set"
            ? el("span", name, labelOf(setting))
            : el("label", { ...name, for: key }, labelOf(setting)),
          state,
        ),
        help && el("p", { id: `${key}-help` }, help),
        el("p", { class: "hint setting-facts" }, el("code", {}, key), ...facts(setting)),
        !isDefault &&
          el(
            "p",
            {},
            button(t("settings.back"), {
              class: "link",
              "aria-label": `${t("settings.back")}: ${labelOf(setting)}`,
              click: back,
            }),
          ),
      ),
      el("div", { class: "field setting-control" }, control),
    );
    breakable(row);
  };
  draw(draft);
  return row;
}

/**
 * @param {HTMLElement} control or what it is in
 * @param {string} key
 */
function describe(control, key) {
  const found = control.id === key ? control : control.querySelector(`#${key}`);
  found?.setAttribute("aria-describedby", `${key}-help`);
}

/**
 * Its default, and who set it when.
 * @param {Setting} setting
 * @returns {(Node | string)[]}
 */
function facts(setting) {
  const { is_sensitive: isSecret, is_set: isSet, updated_at: at, updated_by: by } = setting;
  /** @type {(Node | string)[]} */
  const all = isSecret ? [] : [t("settings.default", { value: defaultWords(setting) })];
  if (isSet && at) {
    const time = moment(at);
    const { author } = setting;
    const whom = t("settings.changed_by", { time, name: author });
    if (author) all.push(el("a", { href: `/admin/users/${by}` }, whom));
    else all.push(t(by ? "settings.changed_at" : "settings.changed_by_command", { time }));
  }
  return all.map((one) => el("span", {}, one));
}

/**
 * @param {Setting} setting
 * @param {Value} value
 * @param {(value: Value) => void} set
 * @returns {HTMLElement}
 */
function controlOf(setting, value, set) {
  const { key, value_type: type, options, unit } = setting;
  const text = String(value);
  if (type === "boolean") return switchOf(key, text === "true", set);
  if (type === "string" && options.length > 0) {
    const choice = select(
      key,
      options.map((one) => [one.value, optionWord(key, one.value)]),
      { id: key, value: text },
    );
    choice.addEventListener("change", () => set(choice.value));
    return choice;
  }
  const chosen = Array.isArray(value) ? value : [];
  if (type === "string_enum_set") return ticks(setting, chosen, set);
  if (type === "string_array") return entries(setting, chosen, set);
  if (type === "multiline") {
    const area = el("textarea", { id: key, name: key, rows: 4, spellcheck: "false" });
    area.value = text;
    area.addEventListener("input", () => set(area.value));
    return area;
  }
  if (key === COLOR) return colorField(key, text, set);
  if (type === "number" && unit)
    return amountField({ ...setting, unit: /** @type {Kind} */ (unit) }, text, set);
  return line(setting, text, set);
}

/**
 * @param {string} key
 * @param {boolean} isOn
 * @param {(value: Value) => void} set
 */
function switchOf(key, isOn, set) {
  const box = el("input", {
    id: key,
    type: "checkbox",
    role: "switch",
    class: "switch",
    checked: isOn,
  });
  const words = el("span", { "aria-hidden": "true" }, t(isOn ? "settings.on" : "settings.off"));
  box.addEventListener("change", () => {
    words.textContent = t(box.checked ? "settings.on" : "settings.off");
    set(String(box.checked));
  });
  return el("div", { class: "side-by-side" }, box, words);
}

/**
 * @param {Setting} setting
 * @param {string} value
 * @param {(value: Value) => void} set
 */
function line(setting, value, set) {
  const { key, value_type: type, is_sensitive: isSecret, minimum, maximum } = setting;
  const number =
    type === "number" ? { type: "number", min: minimum, max: maximum, inputmode: "numeric" } : {};
  const placeholder = setting.is_set ? t("settings.secret_kept") : "";
  const secret = isSecret ? { type: "password", autocomplete: "off", placeholder } : {};
  const maxlength = setting.max_length;
  const input = textInput(key, { id: key, value, maxlength, ...number, ...secret });
  input.addEventListener("input", () => set(input.value));
  return type === "number" ? el("div", { class: "amount" }, input) : input;
}
