// @ts-check
// A button that copies a text.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/**
 * False where pages have no clipboard, as without https.
 * @param {string} text
 * @param {{ copied?: () => void, [attribute: string]: unknown }} [attributes] `copied` is called
 *   once it is done
 */
export function copyButton(text, { copied = () => {}, ...attributes } = {}) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    node.textContent = t("copied");
    copied();
  };
  const node = el("button", { type: "button", click: copy, ...attributes }, t("copy"));
  return "clipboard" in navigator && node;
}
