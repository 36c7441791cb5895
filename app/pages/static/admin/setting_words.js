// @ts-check
// What settings are called, and what their values and the complaints about them say.

import { hasText, language, t, textKeys } from "../base/i18n.js";
import { amount } from "./amounts.js";

/** @import { Kind } from "./amounts.js" */
/** @import { Setting } from "./stored_settings.js" */

const LONG = 60;
/** Words that the catalogue has elsewhere. @type {Record<string, string>} */
const FAMILIES = { audit_log_recorded_actions: "action", pages_theme: "theme" };
const PROBLEM = "problem.";

/** @param {Pick<Setting, "key">} setting */
export function labelOf({ key }) {
  return t(`setting.${key}`);
}

/** @param {Pick<Setting, "key">} setting */
export function helpOf({ key }) {
  return hasText(`setting.${key}.help`) ? t(`setting.${key}.help`) : "";
}

/**
 * @param {string} key
 * @param {string} value
 */
export function optionWord(key, value) {
  return t(FAMILIES[key] ? `${FAMILIES[key]}.${value}` : `option.${key}.${value}`);
}

/** @param {Setting} setting */
export function defaultWords({ key, value_type: type, default: value, options, unit }) {
  if (Array.isArray(value)) return listed(key, value, options.length);
  const text = String(value);
  if (type === "boolean") return t(text === "true" ? "settings.on" : "settings.off");
  if (options.length > 0) return optionWord(key, text);
  if (type === "number") return numberWords(text, unit);
  return shortened(text) || t("settings.empty");
}

/**
 * @param {string} key
 * @param {string[]} values
 * @param {number} all how many options there are
 */
function listed(key, values, all) {
  if (values.length === 0) return t("settings.empty");
  if (all > 0 && values.length === all) return t("settings.all");
  return shortened(inOrder(all > 0 ? values.map((one) => optionWord(key, one)) : values));
}

/** @param {string[]} words */
export function inOrder(words) {
  return new Intl.ListFormat(language, { type: "conjunction" }).format(words);
}

/** @param {string} text */
function shortened(text) {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

/**
 * @param {string} text
 * @param {string | null | undefined} unit
 */
function numberWords(text, unit) {
  if (unit) return amount(Number(text), /** @type {Kind} */ (unit));
  return Number(text).toLocaleString(language, { useGrouping: false });
}

/**
 * What the service says is wrong with a value, in the language of the page; undefined if the
 * catalogue does not have it. Its keys are the sentences in English, with {names} for what varies.
 * @param {string} sentence
 * @param {Setting["unit"]} [unit] of the numbers in it
 */
export function problemWords(sentence, unit) {
  if (hasText(`problem.${sentence}`)) return t(`problem.${sentence}`);
  for (const key of textKeys(PROBLEM)) {
    const found = patternOf(key.slice(PROBLEM.length)).exec(sentence)?.groups;
    if (!found) continue;
    const { least, most } = found;
    const isAmount = least !== undefined && unit;
    return t(key, {
      ...found,
      ...(isAmount && { least: numberWords(least, unit), most: numberWords(String(most), unit) }),
    });
  }
  return undefined;
}

/** @param {string} key */
function patternOf(key) {
  const parts = key.split(/\{(\w+)\}/);
  const source = parts.map((part, index) =>
    index % 2 ? `(?<${part}>.+)` : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  );
  return new RegExp(`^${source.join("")}$`, "s");
}
