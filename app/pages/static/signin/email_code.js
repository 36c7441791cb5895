// @ts-check
// Signing in with a code by e-mail: an address, then the code that was sent there.
//
// What waits for its code is kept in the state of this entry of the tab's history: on a phone, a
// look into the mailbox may cost the page.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { field, handle, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { staysSignedIn } from "../base/kept.js";
import { pause, sendButton } from "../base/pause.js";
import { showNotice, showProblem } from "../base/problem.js";
import { CHECKS } from "../base/rules.js";
import { showMailbox } from "./mailbox.js";
import { show } from "./stage.js";

/** @import { Refusal } from "../base/api.js" */
/** @import { Data } from "../../types" */
/** @typedef {{ token: string, email: string, endsAt: number, againAt: number }} Waiting */
/**
 * @typedef {object} Ways
 * @property {(step: Data<"post", "/auth/email-code/finish">) => Promise<unknown>} goOn
 * @property {() => void} back leads to the other ways to sign in
 */

const WRONG = "auth.mfa_code_invalid";
const ENDS_FLOW = ["auth.mfa_flow_expired", "auth.mfa_flow_invalid", "auth.mfa_attempts_exceeded"];

/**
 * Asks for the address.
 * @param {string} typed
 * @param {Ways} ways
 */
export function askForCode(typed, ways) {
  keepWaiting(null);
  const address = textInput("email", {
    type: "email",
    autocomplete: "email",
    required: true,
    autocapitalize: "none",
    value: typed,
  });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    el("p", { class: "lead" }, t("email_code.lead")),
    field(t("field.email"), address),
    el("button", { type: "submit", class: "primary" }, t("email_code.send")),
  );
  handle(form, {
    busy: t("mfa.sending"),
    checks: { email: (value) => CHECKS.email?.(value) ?? "" },
    async submit({ email = "" }) {
      enterCode(await startFor(email.trim()), ways);
    },
  });
  show(t("email_code.title"), [form, backLink(ways)], { focus: address });
}

/**
 * Asks for the code that was sent.
 * @param {Waiting} waiting
 * @param {Ways} ways
 */
export function enterCode(waiting, ways) {
  let { token } = waiting;
  const { email } = waiting;
  keepWaiting(waiting);
  const code = textInput("code", {
    autocomplete: "one-time-code",
    inputmode: "numeric",
    required: true,
  });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("mfa.email_code.label"), code),
    el("button", { type: "submit", class: "primary" }, t("login.submit")),
  );
  handle(form, {
    busy: t("login.busy"),
    fields: { [WRONG]: "code" },
    own: { [WRONG]: "email_code.wrong" },
    async submit({ code = "" }) {
      const body = { flow_token: token, code, remember: staysSignedIn() };
      const step = await call("post", "/auth/email-code/finish", { body });
      keepWaiting(null);
      await ways.goOn(step);
    },
    taken(refusal) {
      if (refusal.code === WRONG) code.value = "";
      return isOver(refusal, email, ways);
    },
  });
  const again = sendButton(t("send_again"), {
    busy: t("mfa.sending"),
    async send() {
      const next = await startFor(email);
      token = next.token;
      keepWaiting(next);
      showNotice(t("email_code.sent_again"), { kind: "good", isQuiet: true });
      return secondsUntil(next.againAt);
    },
  });
  const change = () => askForCode(email, ways);
  showMailbox(t("email_code.sent"), email, change, form, again, backLink(ways));
  if (secondsUntil(waiting.againAt) > 0) pause(again, secondsUntil(waiting.againAt));
  code.focus();
}

/** @param {string} email */
async function startFor(email) {
  const { flow_token, expires_in, resend_after } = await call("post", "/auth/email-code/start", {
    body: { email },
  });
  const now = Date.now();
  const endsAt = now + expires_in * 1000;
  return { token: flow_token, email, endsAt, againAt: now + resend_after * 1000 };
}

/**
 * The flow has ended: another mail is needed, for the same address.
 * @param {Refusal} refusal
 * @param {string} email
 * @param {Ways} ways
 */
function isOver(refusal, email, ways) {
  if (!ENDS_FLOW.includes(refusal.code)) return false;
  askForCode(email, ways);
  showProblem(refusal);
  return true;
}

/** @param {Ways} ways */
function backLink({ back }) {
  const leave = () => {
    keepWaiting(null);
    back();
  };
  return el("button", { type: "button", class: "link", click: leave }, t("email_code.other"));
}

/** @param {Waiting | null} emailCode */
function keepWaiting(emailCode) {
  window.history.replaceState({ ...window.history.state, emailCode }, "");
}

/** @param {number} time */
function secondsUntil(time) {
  return Math.ceil((time - Date.now()) / 1000);
}
