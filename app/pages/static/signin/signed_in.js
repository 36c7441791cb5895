// @ts-check
// Somebody is signed in already, and may want to be somebody else.

import { el } from "../base/dom.js";
import { busy } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { afterSignIn } from "../base/return_path.js";
import { signOut } from "../base/session.js";
import { show } from "./stage.js";

/** @param {{ username: string }} me */
export function showSignedIn({ username }) {
  const other = el("button", { type: "button", class: "secondary" }, t("login.other_account"));
  other.addEventListener("click", async () => {
    const finish = busy(other, t("sign_out.busy"));
    try {
      await signOut();
      window.location.reload();
    } catch (error) {
      finish();
      showProblem(error);
    }
  });
  const go = el("a", { class: "button primary", href: afterSignIn() }, t("login.continue"));
  show(t("login.signed_in", { name: username }), [go, other]);
}
