// @ts-check
// Makes an account, and signs in to it.

import { call } from "../base/api.js";
import { el, input } from "../base/dom.js";
import { focusFirst, handle, mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { start } from "../base/page.js";
import { CHECKS } from "../base/rules.js";
import { enter } from "./enter.js";
import { dealtWith, FIELDS, measure, toSignIn } from "./new_account.js";
import { noteWhoIsSignedIn } from "./other_account.js";
import { show, wayBack } from "./stage.js";

const CLOSES = ["auth.registration_disabled", "auth.password_login_disabled"];

start(async () => {
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById("account-form"));
  if (!form) return undefined;
  measure();
  /** The addresses that were typed for accounts made here, by their names. */
  const made = new Map();
  handle(form, {
    busy: t("register.busy"),
    checks: CHECKS,
    fields: FIELDS,
    async submit({ username = "", email = "", password = "" }) {
      const back = wayBack(input("email"));
      await call("post", "/auth/register", { body: { username, email, password } });
      made.set(username, email);
      await enter(username, password, { outcome: "registered", email, back });
    },
    taken(refusal) {
      const email = made.get(input("username").value);
      if (refusal.code === "auth.username_exists" && email) {
        mark(input("username"), t("register.own_name", { email }));
        input("username").focus();
        return true;
      }
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
  await noteWhoIsSignedIn();
  return focusFirst(form);
});
