// @ts-check
// The second step of a sign-in: a code from an app, from a list, or from a mail.

import { call, Refusal } from "../base/api.js";
import { el, replace, say } from "../base/dom.js";
import { field, handle, mark, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { staysSignedIn } from "../base/kept.js";
import { sendButton } from "../base/pause.js";
import { showNotice, showProblem } from "../base/problem.js";
import { show, tabs } from "./stage.js";

/** @import { Data, Schemas } from "../../types" */
/** @typedef {Schemas["MfaRequiredData"]} MfaRequired */
/** @typedef {"totp" | "recovery_code" | "email_code"} Method */

const LAST_MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3600;
const DAY_SECONDS = 86400;
const KNOWN = ["totp", "recovery_code", "email_code"];
const ENDS_FLOW = ["auth.mfa_flow_expired", "auth.mfa_flow_invalid", "auth.mfa_attempts_exceeded"];
const AT_FIELD = [
  "auth.mfa_code_invalid",
  "auth.mfa_recovery_code_used",
  "auth.mfa_email_code_required",
  "auth.mfa_email_code_expired",
];

/**
 * @param {Omit<MfaRequired, "status">} challenge
 * @param {(step: Data<"post", "/auth/mfa/challenge/verify">) => Promise<unknown>} goOn
 */
export function secondFactor(challenge, goOn) {
  const methods = /** @type {Method[]} */ (
    challenge.methods.filter((method) => KNOWN.includes(method))
  );
  let method = methods[0] ?? "totp";
  const input = textInput("code", { required: true, autocapitalize: "none" });
  const label = el("span");
  const hint = el("span");
  const sending = el("div", { class: "sending" });
  const trust = trustBox(challenge.remember_device_secs);
  const choose = (/** @type {Method} */ chosen) => {
    method = chosen;
    label.textContent = t(`mfa.${method}.label`);
    hint.textContent = t(`mfa.${method}.hint`);
    input.value = "";
    input.setAttribute("autocomplete", method === "recovery_code" ? "off" : "one-time-code");
    input.setAttribute("inputmode", method === "recovery_code" ? "text" : "numeric");
    mark(input, "");
    replace(sending, method === "email_code" && mailButton(challenge.flow_token));
  };
  const form = el(
    "form",
    { method: "post", novalidate: true },
    methods.length > 1 &&
      tabs(
        t("mfa.method"),
        methods.map((one) => [one, t(`mfa.${one}.tab`)]),
        choose,
      ),
    sending,
    field(label, input, { hint }),
    trust,
    el("button", { type: "submit", class: "primary" }, t("mfa.submit")),
  );
  choose(method);
  handle(form, {
    busy: t("mfa.busy"),
    fields: Object.fromEntries(AT_FIELD.map((code) => [code, "code"])),
    async submit({ code = "", trust = "" }) {
      const trusts = trust ? { remember_device: true } : {};
      const body = { flow_token: challenge.flow_token, method, code, ...trusts };
      await goOn(await call("post", "/auth/mfa/challenge/verify", { body }));
    },
    taken(refusal) {
      if (AT_FIELD.includes(refusal.code)) input.value = "";
      return isOver(refusal);
    },
  });
  show(t("mfa.title"), [el("p", { class: "lead" }, t("mfa.lead")), form, startOver("link")], {
    focus: input,
  });
  remind(challenge.expires_in, form);
}

/**
 * Whether this step is to be left out here from now on; null where that is not offered, or where
 * nothing is to outlast the window.
 * @param {number} seconds
 */
function trustBox(seconds) {
  if (!seconds || !staysSignedIn()) return null;
  const days = Math.floor(seconds / DAY_SECONDS);
  const label = days
    ? t("mfa.trust_days", { count: days })
    : t("mfa.trust_hours", { count: Math.floor(seconds / HOUR_SECONDS) });
  return el(
    "div",
    { class: "tick" },
    el("input", { type: "checkbox", id: "trust", name: "trust", "aria-describedby": "trust-hint" }),
    el("label", { for: "trust" }, label),
    el("p", { class: "hint", id: "trust-hint" }, t("mfa.trust_hint")),
  );
}

/** @param {Refusal} refusal */
function isOver(refusal) {
  if (!ENDS_FLOW.includes(refusal.code)) return false;
  show(t("mfa.over"), [startOver("primary")]);
  showProblem(refusal);
  return true;
}

/** @param {string} style */
function startOver(style) {
  const url = new URL(window.location.href);
  for (const name of ["mfa", "external_auth", "code"]) url.searchParams.delete(name);
  const again = () => window.location.replace(url);
  return el("button", { type: "button", class: style, click: again }, t("mfa.start_over"));
}

/** @param {string} flow_token */
function mailButton(flow_token) {
  return sendButton(t("mfa.send"), {
    busy: t("mfa.sending"),
    async send() {
      const { resend_after } = await call("post", "/auth/mfa/challenge/email-code/send", {
        body: { flow_token },
      });
      say(t("mfa.sent"));
      document.getElementById("code")?.focus();
      return resend_after;
    },
    taken: (error) => error instanceof Refusal && isOver(error),
  });
}

/**
 * Tells of the last minute, and of the end.
 * @param {number} seconds
 * @param {HTMLElement} form
 */
function remind(seconds, form) {
  const isShown = () => form.isConnected;
  setTimeout(
    () => isShown() && showNotice(t("mfa.last_minute"), { kind: "warn", isQuiet: true }),
    Math.max(seconds - LAST_MINUTE_SECONDS, 0) * 1000,
  );
  setTimeout(
    () =>
      isShown() &&
      isOver(new Refusal({ status: 401, code: "auth.mfa_flow_expired", isChange: false })),
    seconds * 1000,
  );
}
