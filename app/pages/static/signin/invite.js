// @ts-check
// Accepts an invitation: an account for the invited address.

import { call, Refusal } from "../base/api.js";
import { byId, el, input } from "../base/dom.js";
import { focusFirst, handle } from "../base/form.js";
import { day } from "../base/format.js";
import { t } from "../base/i18n.js";
import { start } from "../base/page.js";
import { load } from "../base/retry.js";
import { CHECKS } from "../base/rules.js";
import { enter } from "./enter.js";
import { dropToken, takeToken } from "./kept_token.js";
import { dealtWith, FIELDS, measure, toSignIn } from "./new_account.js";
import { noteWhoIsSignedIn } from "./other_account.js";
import { show } from "./stage.js";

const WITHOUT_TOKEN = "/invite/open";

function tokenOfAddress() {
  const { pathname } = window.location;
  return pathname === WITHOUT_TOKEN ? "" : decodeURIComponent(pathname.slice("/invite/".length));
}

const token = takeToken(tokenOfAddress(), WITHOUT_TOKEN);

/** @param {string} code */
function showClosed(code) {
  dropToken();
  const wasUsed = code === "auth.invitation_accepted";
  const text = t(wasUsed ? "invite.sign_in" : "invite.ask_again");
  const button = toSignIn(`button ${wasUsed ? "primary" : "secondary"}`);
  show(t(`error.${code}`), [el("p", { class: "lead" }, text), button]);
}

/** @param {Refusal} refusal */
function isClosed({ code }) {
  return code.startsWith("auth.invitation_");
}

/** @param {HTMLFormElement} form */
function offerAccount(form) {
  measure();
  handle(form, {
    busy: t("register.busy"),
    checks: CHECKS,
    fields: FIELDS,
    async submit({ username = "", password = "" }) {
      await call("post", "/auth/invitations/{token}/accept", {
        path: { token },
        body: { username, password },
      });
      dropToken();
      await enter(username, password, { outcome: "accepted" });
    },
    taken(refusal) {
      if (!isClosed(refusal))
        return dealtWith(refusal, { password: "password", doubt: "doubt.account" });
      showClosed(refusal.code);
      return true;
    },
  });
}

start(async () => {
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById("account-form"));
  if (!form) return; // passwords are switched off, and the document says so
  if (!token) return showClosed("auth.invitation_invalid");
  try {
    const { email, expires_at } = await load(() =>
      call("get", "/auth/invitations/{token}", { path: { token } }),
    );
    input("email").value = email;
    byId("email-hint").textContent = t("invite.valid_until", { time: day(expires_at) });
  } catch (error) {
    if (!(error instanceof Refusal) || !isClosed(error)) throw error;
    return showClosed(error.code);
  }
  byId("loading").remove();
  form.hidden = false;
  offerAccount(form);
  await noteWhoIsSignedIn();
  return focusFirst(form);
});
