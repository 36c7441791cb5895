// @ts-check
// What is shown once: recovery codes, a generated password, the link of an invitation, a token.

import { openDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { copyButton } from "../base/problem.js";
import { button } from "./fields.js";

/**
 * Shows lines that cannot be shown again; ends when somebody says that they are saved.
 * @param {{ title: string, text: string, lines: string[], file: string, about?: string[],
 *   isPrinted?: boolean }} what `file` is the name under which they are downloaded; `about` says on
 *   paper and in the file what the lines are, if `title` does not; what is for a machine alone is
 *   not printed
 * @returns {Promise<void>}
 */
export function showOnce({ title, text, lines, file, about = [], isPrinted = true }) {
  return new Promise((resolve) => {
    const all = lines.join("\n");
    const content = [[title, ...about].join("\n"), all].join("\n\n");
    const url = URL.createObjectURL(new Blob([`${content}\n`], { type: "text/plain" }));
    const copy = copyButton(all);
    const download = el(
      "a",
      { class: "button secondary", href: url, download: file },
      t("secret.download"),
    );
    const done = el("button", { type: "button", class: "primary" }, t("secret.saved"));
    const body = el(
      "div",
      { class: "dialog-body secret" },
      el("p", { class: "lead" }, text),
      ...about.map((line) => el("p", { class: "on-paper" }, line)),
      el(
        "ul",
        { class: "secret-lines" },
        ...lines.map((line) => el("li", {}, el("code", {}, line))),
      ),
      el(
        "div",
        { class: "secret-ways" },
        copy,
        download,
        isPrinted && button(t("secret.print"), { click: () => window.print() }),
      ),
      el("div", { class: "dialog-actions" }, done),
    );
    const close = openDialog(title, [body], {
      focus: copy || download,
      isKept: true,
      closed: () => {
        URL.revokeObjectURL(url);
        resolve();
      },
    });
    // A key that is still held, or the second press of a double click, meant what led here.
    body.addEventListener(
      "keydown",
      (event) => event.repeat && [" ", "Enter"].includes(event.key) && event.preventDefault(),
    );
    done.addEventListener("click", ({ detail }) => detail < 2 && close());
  });
}
