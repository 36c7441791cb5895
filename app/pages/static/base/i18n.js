// @ts-check
// The texts of a page, from the catalogue that its document was drawn with.

import { el } from "./dom.js";

/** @type {Record<string, string>} */
let texts = {};
/** @type {Intl.PluralRules} */
let plural;

/** The language of the page, as in `lang`. */
export const language = document.documentElement.lang;

const AGAIN_MS = 1000;

/**
 * Loads the catalogue, and once more if it did not arrive; nothing may be drawn before.
 * @throws {Error} if there are no texts
 */
export async function loadTexts() {
  plural = new Intl.PluralRules(language);
  texts = await readTexts().catch(async () => {
    await new Promise((done) => setTimeout(done, AGAIN_MS));
    return readTexts();
  });
}

async function readTexts() {
  const answer = await fetch(String(document.documentElement.dataset.catalogue));
  if (!answer.ok) throw new Error(`no texts: ${answer.status}`);
  return answer.json();
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
  return template(key, values).replace(/\{(\w+)\}/g, (_, name) =>
    String(values[name]?.toLocaleString(language)),
  );
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
 * A sentence of the service in the language of the page; undefined if the catalogue does not have
 * it.
 * @param {string} sentence
 */
export function translated(sentence) {
  return texts[sentence] ?? (language === "en" ? sentence : undefined);
}

/**
 * The same to be shown: in English, and marked so, where there is no other.
 * @param {string} sentence
 */
export function asSaid(sentence) {
  return texts[sentence] ?? english(sentence);
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
