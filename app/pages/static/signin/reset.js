// @ts-check
// A forgotten password: asks for a mail, or by its link sets a new one.

import { call } from "../base/api.js";
import { byId, input } from "../base/dom.js";
import { focusFirst, handle } from "../base/form.js";
import { t } from "../base/i18n.js";
import { kept } from "../base/kept.js";
import { leaveFor, note, setTitle, start } from "../base/page.js";
import { pause, sendButton } from "../base/pause.js";
import { showNotice, showProblem } from "../base/problem.js";
import { CHECKS } from "../base/rules.js";
import { dropToken, takeToken } from "./kept_token.js";
import { showMailbox } from "./mailbox.js";
import { dealtWith, measure } from "./new_account.js";
import { wayBack } from "./stage.js";

/** @import { Refusal } from "../base/api.js" */

const AGAIN_SECONDS = 60;
const ENDS_LINK = ["auth.contact_verification_invalid", "auth.contact_verification_expired"];

const address = new URLSearchParams(window.location.search);
const token = takeToken(address.get("token") ?? "", "/reset-password?step=new");
const forms = ["ask-form", "set-form"].map(
  (id) => /** @type {HTMLFormElement | null} */ (document.getElementById(id)),
);
const [askForm, setForm] = forms;
// Before texts are loaded, so that the other form does not appear first.
if (token) choose(setForm);

/** @param {HTMLFormElement | null | undefined} chosen */
function choose(chosen) {
  for (const form of forms) if (form) form.hidden = form !== chosen;
}

/** @param {string} email */
async function request(email) {
  await call("post", "/auth/password/reset/request", { body: { email } });
}

/** @param {HTMLFormElement} form */
function offerMail(form) {
  const known = kept("sessionStorage", "identifier");
  if (known.includes("@") && !input("email").value) input("email").value = known;
  handle(form, {
    busy: t("pending.sending"),
    checks: { email: (value) => CHECKS.email?.(value) ?? "" },
    async submit({ email = "" }) {
      await request(email.trim());
      showSent(email.trim());
    },
  });
}

/** @param {string} email */
function showSent(email) {
  const again = sendButton("", {
    busy: t("pending.sending"),
    async send() {
      await request(email);
      showNotice(t("reset.sent_again"), { kind: "good" });
      return AGAIN_SECONDS;
    },
  });
  showMailbox(t("reset.sent"), email, wayBack(input("email")), again);
  pause(again, AGAIN_SECONDS);
}

/** @param {HTMLFormElement} form */
function offerNewPassword(form) {
  const title = String(form.dataset.title);
  setTitle(title);
  byId("title").textContent = title;
  // For password managers: whose it is, if that was typed in this tab.
  input("username").value = kept("sessionStorage", "identifier");
  measure();
  handle(form, {
    busy: t("reset.saving"),
    checks: { new_password: (value) => CHECKS.new_password?.(value) ?? "" },
    async submit({ new_password = "" }) {
      await call("post", "/auth/password/reset/confirm", { body: { token, new_password } });
      dropToken();
      await leaveFor("/login?reset=1");
    },
    taken(refusal) {
      if (!ENDS_LINK.includes(refusal.code))
        return dealtWith(refusal, { password: "new_password", doubt: "doubt.password" });
      dropToken();
      askAnew(refusal);
      return true;
    },
  });
}

/** @param {Refusal} refusal */
function askAnew(refusal) {
  window.history.replaceState(null, "", "/reset-password");
  choose(askForm);
  setTitle(t("reset.title"));
  byId("title").textContent = t("reset.title");
  showProblem(refusal, {
    own: Object.fromEntries(ENDS_LINK.map((code) => [code, `reset.${code}`])),
  });
}

start(() => {
  if (askForm) offerMail(askForm);
  if (setForm && token) offerNewPassword(setForm);
  else if (address.get("token") === "") note("warn", t("outcome.missing"));
  focusFirst(setForm && token ? setForm : askForm);
});
