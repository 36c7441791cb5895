// @ts-check
// The keys of the consoles: a list of them, and the switch of those that are a single character.

import { openDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { keep, kept } from "../base/kept.js";
import { checkbox } from "./fields.js";

/** Lists the keys. */
export function openShortcuts(/** @type {boolean} */ isApple) {
  const done = el("button", { type: "button", class: "secondary" }, t("dialog.close"));
  const box = checkbox("single_keys", t("keys.single"), {
    checked: kept("localStorage", "keys") !== "off",
    hint: t("keys.single_hint"),
  });
  box.addEventListener("change", ({ target }) => {
    const { checked } = /** @type {HTMLInputElement} */ (target);
    keep("localStorage", "keys", checked ? "" : "off");
  });
  /** @type {[string[], string][]} */
  const keys = [
    [[isApple ? "⌘" : t("keys.control"), "K"], t("keys.go")],
    [["/"], t("keys.search")],
    [["?"], t("keys.list")],
    [["Esc"], t("keys.close")],
  ];
  const lines = keys.flatMap(([pressed, what]) => [
    el("dt", {}, ...pressed.map((one) => el("kbd", {}, one))),
    el("dd", {}, what),
  ]);
  const content = el(
    "div",
    { class: "dialog-body" },
    el("dl", { class: "keys" }, ...lines),
    box,
    el("div", { class: "dialog-actions" }, done),
  );
  done.addEventListener("click", openDialog(t("keys.title"), [content], { focus: done }));
}
