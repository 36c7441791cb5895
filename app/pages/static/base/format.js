// @ts-check
// Moments, sizes and numbers in the language of the page.

import { language, t } from "./i18n.js";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte", "petabyte"];
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const SPANS = [
  ["year", 31536000],
  ["month", 2592000],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];

let zone = /** @type {string | undefined} */ (undefined);

/**
 * Sets the time zone of the account; "browser" is that of the browser.
 * @param {string | null | undefined} name
 */
export function useZone(name) {
  zone = !name || name === "browser" ? undefined : name;
}

/** @param {string} iso */
export function moment(iso) {
  return new Date(iso).toLocaleString(language, {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: zone,
  });
}

/** @param {string} iso */
export function day(iso) {
  return new Date(iso).toLocaleDateString(language, { dateStyle: "medium", timeZone: zone });
}

/**
 * How long ago, or in how long.
 * @param {string} iso
 */
export function ago(iso) {
  const seconds = (new Date(iso).getTime() - Date.now()) / 1000;
  const [unit, length] = SPANS.find(([, span]) => Math.abs(seconds) >= span) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(
    Math.round(seconds / length),
    unit,
  );
}

/**
 * A number of bytes, in units of 1000 as browsers name them.
 * @param {number} bytes
 */
export function size(bytes) {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const options = {
    style: "unit",
    unit: UNITS[power],
    unitDisplay: power ? "short" : "long",
    maximumFractionDigits: power ? 1 : 0,
  };
  return new Intl.NumberFormat(language, /** @type {Intl.NumberFormatOptions} */ (options)).format(
    bytes / 1000 ** power,
  );
}

/** @param {number} value */
export function count(value) {
  return new Intl.NumberFormat(language).format(value);
}

/** @param {number} value */
export function shortCount(value) {
  return new Intl.NumberFormat(language, { notation: "compact" }).format(value);
}

/**
 * A number that may be an estimate: then "about 4.82M", rounded up, so that it is never less than
 * what is shown of the list.
 * @param {number} value
 * @param {boolean} isExact
 */
export function countOrAbout(value, isExact) {
  if (isExact) return count(value);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 2);
  const short = new Intl.NumberFormat(language, {
    notation: "compact",
    maximumSignificantDigits: 3,
  });
  return t("about", { number: short.format(Math.ceil(value / unit) * unit) });
}

/**
 * The same for every letter case, as in the lists that the service searches.
 * @param {string} text
 */
export function folded(text) {
  return text.normalize("NFC").toUpperCase();
}

/** The time zone in which moments are shown, by its IANA name. */
export function zoneName() {
  return zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/**
 * A day of a calendar, whatever the zone.
 * @param {string} date such as 2026-11-26
 */
export function shortDay(date) {
  return new Date(`${date}T00:00:00Z`).toLocaleDateString(language, {
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
}

/**
 * The same with the year.
 * @param {string} date
 */
export function dateText(date) {
  return new Date(`${date}T00:00:00Z`).toLocaleDateString(language, {
    dateStyle: "medium",
    timeZone: "UTC",
  });
}

/**
 * The moment of a date and time as fields give them, in the zone in which moments are shown.
 * @param {string} local such as 2026-11-26T10:30
 */
export function momentOf(local) {
  const asUtc = new Date(`${local}Z`).getTime();
  // What the clocks there say tells how far away they are; near a change of the clocks, once more.
  const offset = (/** @type {number} */ at) =>
    new Date(`${clocks(at)}Z`).getTime() - Math.floor(at / 1000) * 1000;
  return new Date(asUtc - offset(asUtc - offset(asUtc))).toISOString();
}

/** @param {number} at */
function clocks(at) {
  return new Date(at).toLocaleString("sv", { timeZone: zone }).replace(" ", "T");
}
