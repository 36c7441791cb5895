// @ts-check
// The address of the account, and its change, which waits for an answer to a mail.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { el, replace } from "../base/dom.js";
import { field, handle, textInput } from "../base/form.js";
import { rich, t } from "../base/i18n.js";
import { sendButton } from "../base/pause.js";
import { onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { CHECKS } from "../base/rules.js";
import { button, submitLine, warnOfLoss } from "../console/fields.js";
import { badge, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";

/** @import { Me } from "../base/session.js" */
/** @typedef {Pick<Me, "email" | "email_verified" | "pending_email">} Address */

/** The usual time between two mails; the service says if it is longer. */
const AGAIN_SECONDS = 60;

/**
 * @param {HTMLElement} host
 * @param {Address} address
 */
export function showEmail(host, address) {
  const change = button(t("email.change"), { "aria-expanded": "false" });
  const form = changeForm(host, change);
  const open = (/** @type {boolean} */ isOpen, value = "") => {
    form.hidden = !isOpen;
    change.setAttribute("aria-expanded", String(isOpen));
    const input = form.querySelector("input");
    if (value && input) input.value = value;
    if (isOpen) input?.focus();
  };
  change.addEventListener("click", () => open(form.hidden));
  replace(
    host,
    panel(
      "address",
      t("security.address"),
      { actions: [change] },
      el("p", { class: "line" }, el("span", {}, address.email), ...state(address)),
      pending(address, (waiting) => open(true, waiting)),
      form,
    ),
  );
}

/** @param {Address} address */
function state({ email, email_verified: isConfirmed }) {
  if (isConfirmed) return [badge(t("security.confirmed"), "good")];
  const send = sendButton(t("email.confirm"), {
    class: "secondary small",
    busy: t("one_moment"),
    async send() {
      await orSignIn(call("post", "/auth/email/confirmation/send"));
      toast(t("email.sent", { email }));
      return AGAIN_SECONDS;
    },
  });
  return [badge(t("security.unconfirmed"), "warn"), send];
}

/**
 * @param {Address} address
 * @param {(waiting: string) => void} changeIt
 */
function pending({ pending_email: waiting }, changeIt) {
  if (!waiting) return null;
  const again = sendButton(t("email.resend"), {
    class: "secondary small",
    busy: t("one_moment"),
    async send() {
      await orSignIn(call("post", "/auth/email/change/resend"));
      toast(t("email.resent"));
      return AGAIN_SECONDS;
    },
  });
  const edit = button(t("email.edit"), {
    class: "secondary small",
    click: () => changeIt(waiting),
  });
  return el(
    "div",
    { class: "note info" },
    el(
      "div",
      {},
      el("p", {}, ...rich("email.pending", { email: el("strong", {}, waiting) })),
      el("p", { class: "actions" }, again, edit),
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
  warnOfLoss(form);
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
