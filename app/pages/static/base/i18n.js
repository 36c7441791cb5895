// @ts-check
// The texts of a page, from the catalogue that its document was drawn with.

import { el } from "./dom.js";

/** @type {Record<string, string>} */
let texts = {};
/** @type {Intl.PluralRules} */
let plural;

/** The language of the page, as in `lang`. */
export const language = document.documentElement.lang;

/** Loads the catalogue; nothing may be drawn before. */
export async function loadTexts() {
  plural = new Intl.PluralRules(language);
  const answer = await fetch(String(document.documentElement.dataset.catalogue));
  texts = await answer.json();
}

/** @param {string} key */
export function hasText(key) {
  return key in texts;
}

/**
 * Returns a text with its {placeholders} filled. With a `count`, the form for that number:
 * `key.one`, `key.other`.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  return template(key, values).replace(/\{(\w+)\}/g, (_, name) => String(values[name]?.toLocaleString(language)));
}

/**
 * The same where some placeholders are elements, such as links.
 * @param {string} key
 * @param {Record<string, string | number | Node>} values
 * @returns {(string | Node)[]}
 */
export function rich(key, values) {
  const parts = template(key, values).split(/\{(\w+)\}/);
  return parts.map((part, index) => (index % 2 ? asChild(values[part]) : part));
}

/**
 * A text of the service, which has no translation.
 * @param {string} text
 */
export function english(text) {
  return el("span", { lang: "en" }, text);
}

/** @param {string | number | Node | undefined} value */
function asChild(value) {
  return value instanceof Node ? value : String(value);
}

/**
 * @param {string} key
 * @param {Record<string, unknown>} values
 */
function template(key, values) {
  const form = typeof values.count === "number" ? `${key}.${plural.select(values.count)}` : key;
  return texts[form] ?? texts[`${key}.other`] ?? key;
}

/** @param {string} beginning of the keys that are wanted */
export function textKeys(beginning) {
  return Object.keys(texts).filter((key) => key.startsWith(beginning));
}
