// @ts-check
// What checks found, in the language of the page.

import { english, hasText, t } from "../base/i18n.js";

/** @import { Schemas } from "../../types" */
/** @typedef {Schemas["SentenceData"]} Sentence */

/** @param {string} name */
export function checkName(name) {
  const key = `check.${name}`;
  return hasText(key) ? t(key) : english(name);
}

/**
 * Its sentences; one that has no translation is marked as English.
 * @param {{ message: string, sentences: Sentence[] }} found
 */
export function inWords({ message, sentences }) {
  if (sentences.length === 0) return [english(message)];
  return sentences.flatMap(({ template, values }) => {
    if (hasText(template)) return [t(template, values), " "];
    return [english(template.replace(/\{(\w+)\}/g, (as, name) => values[name] ?? as)), " "];
  });
}
