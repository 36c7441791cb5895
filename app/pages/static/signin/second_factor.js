// @ts-check
// The second step of a sign-in: a code from an app, from a list, or from a mail.

import { call, Refusal } from "../base/api.js";
import { el, replace } from "../base/dom.js";
import { handle, mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { codeButton } from "../base/pause.js";
import { showNotice, showProblem } from "../base/problem.js";
import { show, tabs } from "./stage.js";

/** @typedef {import("../../types").Schemas["MfaRequiredData"]} MfaRequired */
/** @typedef {"totp" | "recovery_code" | "email_code"} Method */

const LAST_MINUTE_SECONDS = 60;
const KNOWN = ["totp", "recovery_code", "email_code"];
const ENDS_FLOW = ["auth.mfa_flow_expired", "auth.mfa_flow_invalid", "auth.mfa_attempts_exceeded"];
const AT_FIELD = [
  "auth.mfa_code_invalid",
  "auth.mfa_recovery_code_used",
  "auth.mfa_email_code_required",
  "auth.mfa_email_code_expired",
];

/**
 * @param {Pick<MfaRequired, "flow_token" | "expires_in" | "methods">} challenge
 * @param {(step: import("../../types").Data<"post", "/auth/mfa/challenge/verify">) =>
 *   Promise<unknown>} goOn
 */
export function secondFactor(challenge, goOn) {
  const methods = /** @type {Method[]} */ (
    challenge.methods.filter((method) => KNOWN.includes(method))
  );
  let method = methods[0] ?? "totp";
  const field = el("input", {
    id: "code",
    name: "code",
    required: true,
    type: "text",
    autocapitalize: "none",
    spellcheck: "false",
    "aria-describedby": "code-hint",
  });
  const label = el("label", { for: "code" });
  const hint = el("p", { class: "hint", id: "code-hint" });
  const sending = el("div", { class: "sending" });
  const choose = (/** @type {Method} */ chosen) => {
    method = chosen;
    label.textContent = t(`mfa.${method}.label`);
    hint.textContent = t(`mfa.${method}.hint`);
    field.value = "";
    field.setAttribute("autocomplete", method === "recovery_code" ? "off" : "one-time-code");
    field.setAttribute("inputmode", method === "recovery_code" ? "text" : "numeric");
    mark(field, "");
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
    el("div", { class: "field" }, label, field, hint),
    el("button", { type: "submit", class: "primary" }, t("mfa.submit")),
  );
  choose(method);
  handle(form, {
    busy: t("mfa.busy"),
    fields: Object.fromEntries(AT_FIELD.map((code) => [code, "code"])),
    async submit({ code = "" }) {
      const body = { flow_token: challenge.flow_token, method, code };
      await goOn(await call("post", "/auth/mfa/challenge/verify", { body }));
    },
    taken(refusal) {
      if (AT_FIELD.includes(refusal.code)) field.value = "";
      return isOver(refusal);
    },
  });
  show(t("mfa.title"), [el("p", { class: "lead" }, t("mfa.lead")), form, startOver("link")], {
    focus: field,
  });
  remind(challenge.expires_in, form);
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
  return codeButton({
    text: t("mfa.send"),
    sending: t("mfa.sending"),
    sent: t("mfa.sent"),
    field: "code",
    send: () => call("post", "/auth/mfa/challenge/email-code/send", { body: { flow_token } }),
    fail(error) {
      if (!(error instanceof Refusal && isOver(error))) showProblem(error);
    },
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
