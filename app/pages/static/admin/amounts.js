// @ts-check
// Durations and sizes: settings have seconds and bytes, people read and type minutes and gigabytes.

import { el } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { size } from "../base/format.js";
import { language, t } from "../base/i18n.js";
import { select } from "../console/fields.js";

/** @import { Setting } from "./stored_settings.js" */
/** @typedef {[name: string, factor: number]} Unit the name is that of Intl */

/** By the unit of a setting, those it is shown in: the smallest is its own. */
const UNITS = {
  seconds: /** @type {Unit[]} */ ([
    ["second", 1],
    ["minute", 60],
    ["hour", 3600],
    ["day", 86_400],
  ]),
  days: /** @type {Unit[]} */ ([["day", 1]]),
  bytes: /** @type {Unit[]} */ ([
    ["byte", 1],
    ["kilobyte", 1e3],
    ["megabyte", 1e6],
    ["gigabyte", 1e9],
  ]),
};

/** @typedef {keyof typeof UNITS} Kind */

/** The same in every language. @type {Record<string, string>} */
const SYMBOLS = { kilobyte: "kB", megabyte: "MB", gigabyte: "GB" };
/** In which unit 0 is shown: one that can be counted up to this. */
const ENOUGH = 1000;
/** Coarser than what binary fractions lose. */
const FINE = 1e-3;

/**
 * An amount in the largest unit that divides it.
 * @param {number} value
 * @param {Kind} kind
 */
export function amount(value, kind) {
  if (value === 0) return "0"; // what it means, the help says
  const [unit, factor] = dividing(value, UNITS[kind]);
  const text = inUnit(unit).format(value / factor);
  if (kind !== "bytes" || factor > 1 || value < 1000) return text;
  return t("settings.bytes", { bytes: text, size: t("about", { number: size(value) }) });
}

/**
 * A number and its unit.
 * @param {Setting & { unit: Kind }} setting
 * @param {string} value
 * @param {(value: string) => void} set
 */
export function amountField({ key, unit: kind, default: usual, minimum, maximum }, value, set) {
  const units = UNITS[kind].filter(([, factor]) => factor <= (maximum ?? Infinity));
  const now = Number(value) || Number(usual);
  const [unit, factor] = now
    ? dividing(now, units)
    : largest(units, (one) => one * ENOUGH <= (maximum ?? Infinity));
  const isNumber = value.trim() !== "" && Number.isFinite(Number(value));
  const input = textInput(key, {
    id: key,
    type: "number",
    min: (minimum ?? 0) < 0 ? undefined : 0,
    step: "any",
    inputmode: "decimal",
    value: isNumber ? Number(value) / factor : value,
  });
  const choice = select(
    `${key}-unit`,
    units.map(([one]) => [one, unitName(one)]),
    { id: `${key}-unit`, value: unit, "aria-label": `${t("quota.unit")}: ${t(`setting.${key}`)}` },
  );
  const tell = () => {
    const by = units.find(([one]) => one === choice.value)?.[1] ?? 1;
    const product = Number(input.value) * by;
    const whole = Math.round(product);
    set(input.value && String(Math.abs(product - whole) < FINE ? whole : product));
  };
  input.addEventListener("input", tell);
  choice.addEventListener("change", tell);
  const alone = el("span", {}, unitName(unit));
  return el("div", { class: "amount" }, input, units.length > 1 ? choice : alone);
}

/**
 * @param {number} value
 * @param {Unit[]} units
 */
function dividing(value, units) {
  return largest(units, (factor) => value % factor === 0);
}

/**
 * The largest unit with such a factor, or else the smallest of all.
 * @param {Unit[]} units
 * @param {(factor: number) => boolean} isSuch
 * @returns {Unit}
 */
function largest(units, isSuch) {
  return units.findLast(([, factor]) => isSuch(factor)) ?? units[0] ?? ["second", 1];
}

/** @param {string} unit */
function inUnit(unit) {
  const isShort = unit !== "byte" && unit.endsWith("byte");
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit,
    unitDisplay: isShort ? "short" : "long",
  });
}

/** @param {string} unit */
function unitName(unit) {
  return SYMBOLS[unit] ?? t(`unit.${unit}`);
}
