// @ts-check
// Somebody is signed in already, and may want to be somebody else.

import { logOut } from "../base/api.js";
import { el } from "../base/dom.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { afterSignIn } from "../base/return_path.js";
import { tellSignedOut } from "../base/session.js";
import { show } from "./stage.js";

/** @param {{ username: string }} me */
export function showSignedIn({ username }) {
  const other = el("button", { type: "button", class: "secondary" }, t("login.other_account"));
  const leave = async () => {
    await logOut();
    tellSignedOut();
    window.location.reload();
    await new Promise(() => undefined);
  };
  other.addEventListener("click", () => act(other, t("sign_out.busy"), leave));
  const go = el("a", { class: "button primary", href: afterSignIn() }, t("login.continue"));
  show(t("login.signed_in", { name: username }), [go, other]);
}
