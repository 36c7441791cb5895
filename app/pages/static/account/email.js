// @ts-check
// The address of the account, and its change, which waits for an answer to a mail.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { el, replace } from "../base/dom.js";
import { field, handle, textInput } from "../base/form.js";
import { rich, t } from "../base/i18n.js";
import { onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { CHECKS } from "../base/rules.js";
import { actButton, button, submitLine } from "../console/fields.js";
import { badge, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";

/** @import { Me } from "../base/session.js" */
/** @typedef {Pick<Me, "email" | "email_verified" | "pending_email">} Address */

/**
 * @param {HTMLElement} host
 * @param {Address} address
 */
export function showEmail(host, address) {
  const change = button(t("email.change"), { "aria-expanded": "false" });
  const form = changeForm(host, change);
  change.addEventListener("click", () => {
    form.hidden = !form.hidden;
    change.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("input")?.focus();
  });
  const state = address.email_verified
    ? badge(t("security.confirmed"), "good")
    : badge(t("security.unconfirmed"), "warn");
  replace(
    host,
    panel(
      "address",
      t("security.address"),
      { actions: [change] },
      el("p", { class: "line" }, el("span", {}, address.email), state),
      pending(address),
      form,
    ),
  );
}

/** @param {Address} address */
function pending({ pending_email: waiting }) {
  if (!waiting) return null;
  const again = actButton(t("email.resend"), { class: "secondary small" }, async () => {
    await orSignIn(call("post", "/auth/email/change/resend"));
    toast(t("email.resent"));
  });
  return el(
    "div",
    { class: "note info" },
    el(
      "div",
      {},
      el("p", {}, ...rich("email.pending", { email: el("strong", {}, waiting) })),
      el("p", { class: "actions" }, again),
    ),
  );
}

/**
 * @param {HTMLElement} host
 * @param {HTMLElement} opener
 */
function changeForm(host, opener) {
  const input = textInput("new_email", {
    type: "email",
    autocomplete: "email",
    required: true,
    autocapitalize: "none",
  });
  const form = el(
    "form",
    { method: "post", novalidate: true, hidden: true },
    field(t("email.new"), input, { hint: t("email.hint") }),
    submitLine(t("email.submit")),
  );
  handle(form, {
    busy: t("one_moment"),
    checks: { new_email: CHECKS.email ?? (() => "") },
    fields: {
      "auth.email_exists": "new_email",
      "auth.email_blocked": "new_email",
      "auth.email_not_allowlisted": "new_email",
    },
    async submit({ new_email = "" }) {
      const changed = await asOwner(t("email.why"), () =>
        orSignIn(call("post", "/auth/email/change", { body: { new_email } })),
      );
      if (!changed) return;
      showEmail(host, changed);
      host.querySelector("h2")?.focus();
      if (!changed.pending_email) await nameIsNew();
      toast(changed.pending_email ? t("email.sent", { email: changed.pending_email }) : t("saved"));
    },
  });
  form.addEventListener("keydown", ({ key }) => key === "Escape" && opener.click());
  return form;
}

/** Browsers show passkeys with names that depend on the address. */
export function nameIsNew() {
  return onDemand(() => import("../base/signals.js"))
    .then(({ tellOfPasskeys }) => tellOfPasskeys())
    .catch(() => undefined);
}
