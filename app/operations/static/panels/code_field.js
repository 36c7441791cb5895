// A field for a code of an authenticator app, a recovery code or one by e-mail.

import { el } from "../base/dom.js";

export const PROOF = "Code from the app, or a recovery code";
export const PROOF_HINT = "Each works once here. The app shows its next code within 30 seconds.";

export function codeInput(id) {
  return el("input", {
    id,
    type: "text",
    autocomplete: "one-time-code",
    autocapitalize: "off",
    spellcheck: "false",
  });
}

export function field(control, label, hint) {
  if (hint) control.setAttribute("aria-describedby", `${control.id}-hint`);
  return el(
    "div",
    { class: "field" },
    el("label", { for: control.id }, label),
    control,
    hint && el("p", { class: "hint", id: `${control.id}-hint` }, hint),
  );
}
