// @ts-check
// A new password, which has to be set before anything else.

import { call } from "../base/api.js";
import { byId, input } from "../base/dom.js";
import { act, focusFirst, handle } from "../base/form.js";
import { t } from "../base/i18n.js";
import { leaveFor, start } from "../base/page.js";
import { load } from "../base/retry.js";
import { afterSignIn, withReturnPath } from "../base/return_path.js";
import { signOut, whoIsSignedIn } from "../base/session.js";
import { CHECKS } from "../base/rules.js";
import { dealtWith, measure } from "./new_account.js";

function offerSignOut() {
  const button = byId("sign-out");
  button.addEventListener("click", () => act(button, t("sign_out.busy"), signOut));
}

/** @param {string} value */
function newPasswordComplaint(value) {
  if (value === input("current_password").value) return t("password.same");
  return CHECKS.new_password?.(value) ?? "";
}

function offerChange() {
  measure();
  handle(/** @type {HTMLFormElement} */ (byId("password-form")), {
    busy: t("reset.saving"),
    checks: { new_password: newPasswordComplaint },
    fields: { "auth.credentials_failed": "current_password" },
    own: { "auth.credentials_failed": "force_change.wrong" },
    async submit({ current_password = "", new_password = "" }) {
      await call("put", "/auth/password", { body: { current_password, new_password } });
      await leaveFor(afterSignIn());
    },
    taken(refusal) {
      if (!refusal.isSignedOut)
        return dealtWith(refusal, { password: "new_password", doubt: "doubt.password" });
      leaveFor(withReturnPath("/login"));
      return true;
    },
  });
}

start(async () => {
  offerSignOut();
  offerChange();
  const me = await load(whoIsSignedIn);
  if (!me) return leaveFor(withReturnPath("/login"));
  if (!me.must_change_password) return leaveFor(afterSignIn());
  input("username").value = me.username;
  byId("who").textContent = t("force_change.who", { name: me.username });
  return focusFirst(/** @type {HTMLFormElement} */ (byId("password-form")));
});
