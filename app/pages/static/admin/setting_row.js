// @ts-check
// One setting: what it means, a control for its kind of value, and the way back to its default.

import { el, replace } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { moment } from "../base/format.js";
import { asSaid, t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { button, select } from "../console/fields.js";
import { badge } from "../console/panel.js";

/** @typedef {import("./stored_settings.js").Setting} Setting */
/** @typedef {import("./settings.js").Value} Value */
/**
 * @typedef {(setting: Setting, value: Value | null) => boolean} Change returns whether there is a
 *   draft
 */

/**
 * @param {Setting} setting
 * @param {Value | null | undefined} draft undefined while it is as it is saved
 * @param {Change} change
 */
export function settingRow(setting, draft, change) {
  const row = el("section", { class: "panel setting", "aria-labelledby": `${setting.key}-label` });
  const draw = (/** @type {Value | null | undefined} */ now) => {
    const isDefault = now === null || (now === undefined && !setting.is_set);
    const value =
      now === null ? setting.default : (now ?? (setting.is_sensitive ? "" : setting.value));
    const back = button(t("settings.back"), {
      class: "link",
      "aria-label": `${t("settings.back")}: ${setting.key}`,
    });
    back.addEventListener("click", () => {
      change(setting, null);
      draw(null);
      document.getElementById(setting.key)?.focus();
    });
    const stateOf = (/** @type {boolean} */ isDraft) =>
      isDraft ? badge(t("settings.draft"), "warn") : setting.is_set && badge(t("settings.changed"));
    const set = (/** @type {Value} */ next) => {
      replace(badges, stateOf(change(setting, next)));
    };
    const badges = el("span", {}, stateOf(now !== undefined));
    replace(
      row,
      el(
        "div",
        { class: "setting-head" },
        el("label", { id: `${setting.key}-label`, for: setting.key }, asSaid(meaningOf(setting))),
        badges,
      ),
      controlOf(setting, value, set),
      el(
        "p",
        { class: "hint" },
        el("code", {}, setting.key),
        defaultWords(setting),
        whoWords(setting),
      ),
      !isDefault && el("p", {}, back),
    );
  };
  draw(draft);
  return row;
}

/**
 * What the service says of it, without what it takes.
 * @param {Pick<Setting, "description">} setting
 */
export function meaningOf({ description }) {
  return description.replace(/ \([^()]*(\([^()]*\)[^()]*)*\)$/, "");
}

/** @param {Setting} setting */
function defaultWords({ default: value, is_sensitive: isSecret, unit }) {
  if (isSecret) return null;
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  const shown = short && unit ? `${short} ${t(`unit.${unit}`)}` : short;
  return ` · ${t("settings.default", { value: shown || t("settings.empty") })}`;
}

/** @param {Setting} setting */
function whoWords({ is_set: isSet, updated_at: at, updated_by: by, author }) {
  if (!isSet || !at) return null;
  const time = moment(at);
  return [
    " · ",
    author
      ? el("a", { href: `/admin/users/${by}` }, t("settings.changed_by", { time, name: author }))
      : t("settings.changed_at", { time }),
  ];
}

/**
 * @param {Setting} setting
 * @param {Value} value
 * @param {(value: Value) => void} set
 * @returns {HTMLElement}
 */
function controlOf(setting, value, set) {
  const { key, value_type: type, options } = setting;
  const text = String(value);
  if (type === "boolean") return switchOf(key, text === "true", set);
  if (type === "string" && options.length > 0) {
    const choice = select(
      key,
      options.map((one) => [one.value, one.value]),
      { id: key, value: text },
    );
    choice.addEventListener("change", () => set(choice.value));
    return choice;
  }
  const chosen = Array.isArray(value) ? value : [];
  if (type === "string_enum_set") return ticks(setting, chosen, set);
  if (type === "string_array") return entries(setting, chosen, set);
  if (type === "multiline") {
    const area = el("textarea", { id: key, name: key, rows: 5, spellcheck: "false" });
    area.value = text;
    area.addEventListener("input", () => set(area.value));
    return area;
  }
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
  return el("div", { class: "side-by-side field" }, box, words);
}

/**
 * @param {Setting} setting
 * @param {string} value
 * @param {(value: Value) => void} set
 */
function line(
  {
    key,
    value_type: type,
    is_sensitive: isSecret,
    minimum,
    maximum,
    max_length: most,
    unit,
    is_set: isSet,
  },
  value,
  set,
) {
  const number =
    type === "number" ? { type: "number", min: minimum, max: maximum, inputmode: "numeric" } : {};
  const secret = isSecret
    ? { type: "password", autocomplete: "off", placeholder: isSet ? t("settings.secret_kept") : "" }
    : {};
  const input = textInput(key, { id: key, value, maxlength: most, ...number, ...secret });
  input.addEventListener("input", () => set(input.value));
  return el(
    "div",
    { class: "field" },
    el(
      "div",
      { class: "side-by-side" },
      input,
      unit && el("span", { class: "hint" }, t(`unit.${unit}`)),
    ),
  );
}

/**
 * @param {Setting} setting
 * @param {string[]} chosen
 * @param {(value: Value) => void} set
 */
function ticks({ key, options }, chosen, set) {
  const boxes = options.map(({ value }) =>
    el("input", {
      type: "checkbox",
      id: `${key}-${value}`,
      value,
      checked: chosen.includes(value),
    }),
  );
  const tell = () => set(boxes.filter((one) => one.checked).map((one) => one.value));
  const lines = boxes.map((box) => {
    box.addEventListener("change", tell);
    return el("div", { class: "field tick" }, box, el("label", { for: box.id }, box.value));
  });
  return el(
    "fieldset",
    { id: key, class: "ticks", tabindex: "-1" },
    el("legend", { class: "visually-hidden" }, key),
    ...lines,
  );
}

/**
 * @param {Setting} setting
 * @param {string[]} value
 * @param {(value: Value) => void} set
 */
function entries({ key }, value, set) {
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
  const draw = () =>
    replace(
      lines,
      ...all.map((entry, index) =>
        el(
          "li",
          { class: "line" },
          el("span", { class: "mono" }, entry),
          el(
            "button",
            {
              type: "button",
              class: "quiet",
              "aria-label": `${t("remove")}: ${entry}`,
              click: () => {
                all.splice(index, 1);
                draw();
                set([...all]);
                input.focus();
              },
            },
            icon("close"),
          ),
        ),
      ),
    );
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    add();
  });
  input.addEventListener("blur", add); // what was typed is meant, even without the button
  draw();
  return el(
    "div",
    { class: "field entries" },
    lines,
    el("div", { class: "side-by-side" }, input, button(t("settings.add"), { click: add })),
  );
}
