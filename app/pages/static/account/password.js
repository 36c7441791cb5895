// @ts-check
// A new password; or a mail to set the first one.

import { call } from "../base/api.js";
import { el, replace } from "../base/dom.js";
import { handle } from "../base/form.js";
import { rich, t } from "../base/i18n.js";
import { showNotice } from "../base/problem.js";
import { onDemand } from "../base/retry.js";
import { CHECKS } from "../base/rules.js";
import { orSignIn } from "../base/session.js";
import { actButton, passwordField, submitLine } from "../console/fields.js";
import { panel } from "../console/panel.js";
import { toast } from "../console/toast.js";

/**
 * @param {HTMLElement} host stays empty where passwords are switched off
 * @param {import("../base/session.js").Me} me
 * @param {boolean} hasPassword
 */
export function showPassword(host, me, hasPassword) {
  if (document.documentElement.dataset.noPasswords !== undefined) return;
  if (hasPassword)
    replace(host, panel("password", t("password.title"), { lead: lead() }, changeForm(me)));
  else
    replace(
      host,
      panel("password", t("password.title"), { lead: t("password.none") }, linkButton(me)),
    );
}

/** @param {import("../base/session.js").Me} me */
function changeForm(me) {
  const name = el("input", {
    type: "text",
    name: "username",
    autocomplete: "username",
    value: me.username,
    hidden: true,
  });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    name,
    passwordField("current_password", t("password.current"), "current-password"),
    passwordField("new_password", t("password.new"), "new-password", t("password.rule")),
    submitLine(t("password.submit")),
  );
  const current = () =>
    /** @type {HTMLInputElement} */ (form.elements.namedItem("current_password")).value;
  handle(form, {
    busy: t("saving"),
    checks: {
      new_password: (value) =>
        value === current() ? t("password.same") : (CHECKS.new_password?.(value) ?? ""),
    },
    fields: { "auth.credentials_failed": "current_password", bad_request: "new_password" },
    own: { "auth.credentials_failed": "password.wrong" },
    async submit({ current_password = "", new_password = "" }) {
      await orSignIn(call("put", "/auth/password", { body: { current_password, new_password } }));
      form.reset();
      toast(t("password.changed"));
      await showKept(form);
    },
    taken(refusal) {
      if (!refusal.isPassing) return false;
      showNotice(t("password.doubt"), { kind: "warn" });
      return true;
    },
  });
  return form;
}

/** What a new password ends, and what not. */
function lead() {
  const link = el("a", { href: "/settings/tokens" }, t("password.tokens_link"));
  return el("span", {}, t("password.lead"), " ", ...rich("password.tokens", { link }));
}

/**
 * Says which tokens are valid still; the password has been changed, even if this cannot be known.
 * @param {HTMLElement} form
 */
async function showKept(form) {
  await onDemand(() => import("./kept_tokens.js")).then(
    ({ offerToEnd }) => offerToEnd(form),
    () => undefined,
  );
}

/** @param {import("../base/session.js").Me} me */
function linkButton({ email }) {
  const send = actButton(t("password.send_link"), {}, async () => {
    await call("post", "/auth/password/reset/request", { body: { email } });
    toast(t("password.link_sent", { email }));
  });
  return el("div", { class: "form-actions" }, send);
}
