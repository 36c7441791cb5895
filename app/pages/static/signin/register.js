// @ts-check
// Makes an account, and signs in to it.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { handle } from "../base/form.js";
import { t } from "../base/i18n.js";
import { start } from "../base/page.js";
import { CHECKS } from "../base/rules.js";
import { enter } from "./enter.js";
import { dealtWith, FIELDS, measure, toSignIn } from "./new_account.js";
import { noteWhoIsSignedIn } from "./other_account.js";
import { show } from "./stage.js";

const CLOSES = ["auth.registration_disabled", "auth.password_login_disabled"];

start(() => {
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById("account-form"));
  if (!form) return undefined;
  measure();
  handle(form, {
    busy: t("register.busy"),
    checks: CHECKS,
    fields: FIELDS,
    async submit({ username = "", email = "", password = "" }) {
      await call("post", "/auth/register", { body: { username, email, password } });
      await enter(username, password, { outcome: "registered" });
    },
    taken(refusal) {
      if (CLOSES.includes(refusal.code)) {
        show(t("register.closed_title"), [
          el("p", { class: "lead" }, t("register.closed")),
          toSignIn("button secondary"),
        ]);
        return true;
      }
      return dealtWith(refusal, { password: "password", doubt: "doubt.account" });
    },
  });
  return noteWhoIsSignedIn();
});
