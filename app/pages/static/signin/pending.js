// @ts-check
// The password is right, but the account waits for an answer to its mail.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { act, field, handle, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice } from "../base/problem.js";
import { showMailbox } from "./mailbox.js";
import { show } from "./stage.js";

/** A link was too old or used: asks whose account is to get another one. */
export function askForMail() {
  const identifier = textInput("identifier", {
    autocomplete: "username",
    required: true,
    autocapitalize: "none",
  });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("login.identifier"), identifier),
    el("button", { type: "submit", class: "primary" }, t("pending.new")),
  );
  handle(form, {
    busy: t("pending.sending"),
    async submit({ identifier = "" }) {
      await call("post", "/auth/register/resend", { body: { identifier } });
      showNotice(t("pending.sent"), { kind: "good" });
    },
  });
  const back = el(
    "button",
    { type: "button", class: "link", click: () => window.location.replace("/login") },
    t("pending.back"),
  );
  show(t("pending.new_title"), [el("p", { class: "lead" }, t("pending.new_lead")), form, back], {
    focus: identifier,
  });
}

/**
 * @param {string} identifier
 * @param {{ email?: string, back?: () => void }} [how] `email` is where the mail was sent, if that
 *   is known; `back` leads to the form
 */
export function pendingActivation(identifier, { email = "", back } = {}) {
  const again = el("button", { type: "button", class: "primary" }, t("pending.resend"));
  again.addEventListener("click", () =>
    act(again, t("pending.sending"), async () => {
      await call("post", "/auth/register/resend", { body: { identifier } });
      showNotice(t("pending.sent"), { kind: "good" });
    }),
  );
  if (email && back) return showMailbox(t("pending.lead_to"), email, back, again);
  const other = el(
    "button",
    { type: "button", class: "link", click: back ?? (() => window.location.reload()) },
    t("pending.other_account"),
  );
  return show(t("pending.title"), [el("p", { class: "lead" }, t("pending.lead")), again, other], {
    emblem: "mail",
  });
}
