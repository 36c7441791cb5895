// @ts-check
// What is shown once: recovery codes, a generated password, the link of an invitation.

import { openDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { copyButton } from "../base/problem.js";
import { button } from "./fields.js";

/**
 * Shows lines that cannot be shown again; ends when somebody says that they are saved.
 * @param {{ title: string, text: string, lines: string[], file: string }} what `file` is the name
 *   under which they are downloaded
 * @returns {Promise<void>}
 */
export function showOnce({ title, text, lines, file }) {
  return new Promise((resolve) => {
    const all = lines.join("\n");
    const url = URL.createObjectURL(new Blob([`${title}\n\n${all}\n`], { type: "text/plain" }));
    const done = el("button", { type: "button", class: "primary" }, t("secret.saved"));
    const content = el(
      "div",
      { class: "dialog-body secret" },
      el("p", { class: "lead" }, text),
      el(
        "ul",
        { class: "secret-lines" },
        ...lines.map((line) => el("li", {}, el("code", {}, line))),
      ),
      el(
        "div",
        { class: "secret-ways" },
        copyButton(all),
        el("a", { class: "button secondary", href: url, download: file }, t("secret.download")),
        button(t("secret.print"), { click: () => window.print() }),
      ),
      el("div", { class: "dialog-actions" }, done),
    );
    const close = openDialog(title, [content], {
      focus: done,
      isKept: true,
      closed: () => {
        URL.revokeObjectURL(url);
        resolve();
      },
    });
    done.addEventListener("click", close);
  });
}
