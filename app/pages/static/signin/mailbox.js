// @ts-check
// Whoever has typed an address waits for a mail there, and sees at which.

import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { show } from "./stage.js";

/**
 * @param {string} lead
 * @param {string} email
 * @param {(() => void) | null} back leads to where it was typed; null where there is one mail only
 * @param {...HTMLElement} actions
 */
export function showMailbox(lead, email, back, ...actions) {
  const change =
    back && el("button", { type: "button", class: "link", click: back }, t("pending.change"));
  const row = el("p", { class: "mailbox" }, el("strong", {}, email), change);
  show(t("pending.title"), [el("p", { class: "lead" }, lead), row, ...actions], {
    emblem: "mail",
  });
}
