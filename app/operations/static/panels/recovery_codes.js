// Recovery codes, which are shown once.

import { el } from "../base/dom.js";
import { copyButton } from "./copy_button.js";

export function recoveryCodes(codes) {
  const list = el("ol", { class: "codes", "aria-label": "Recovery codes" }, codes.map((code) => el("li", {}, el("code", {}, code))));
  return el(
    "div",
    { class: "recovery-codes" },
    el("p", {}, "Save these recovery codes now: they are never shown again. Each works once in place of a code from the app."),
    list,
    copyButton("Copy the codes", codes.join("\n"), list),
  );
}
