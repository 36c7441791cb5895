// The second factor of a login: which one, its code, and a code by e-mail where that is one.

import { el } from "../base/dom.js";
import { halfway } from "../steps.js";
import { codeInput, field } from "./code_field.js";
import { inWords } from "./duration.js";

const METHODS = {
  totp: "Authenticator app",
  recovery_code: "Recovery code",
  email_code: "Code by e-mail",
};
// After these the login begins anew with the password.
const OVER = new Set([
  "auth.mfa_flow_invalid",
  "auth.mfa_flow_expired",
  "auth.mfa_attempts_exceeded",
]);

// `data` is what mfa_required answered; `told(data)` says what the final answer means.
export function secondFactor({ flow_token: flowToken, methods }, { id, run }, told) {
  const method = el("select", { id: `${id}-method` }, methods.map(option));
  const code = codeInput(`${id}-code`);
  const post = async (step, body, explain) => {
    const path = `auth/mfa/challenge/${step}`;
    const answer = await run({ method: "POST", path, body: { flow_token: flowToken, ...body } }, explain);
    if (OVER.has(answer?.json?.code)) form.remove();
    return answer;
  };
  const verify = async () => {
    const answer = await post("verify", { method: method.value, code: code.value }, told);
    if (answer?.ok) form.remove();
    else code.select();
  };
  const mail = async () => {
    await post("email-code/send", {}, sent);
    code.focus();
  };
  const mailButton = el("button", { type: "button", class: "secondary", click: mail }, "Send a code by e-mail");
  const follow = () => {
    mailButton.hidden = method.value !== "email_code";
  };
  const submit = (event) => {
    event.preventDefault();
    verify();
  };
  method.addEventListener("change", follow);
  follow();
  const form = el(
    "form",
    { class: "second-factor", novalidate: true, submit },
    field(method, "Second factor"),
    field(code, "Code"),
    el("div", { class: "row" }, el("button", { class: "primary", type: "submit" }, "Verify"), mailButton),
  );
  return form;
}

function sent({ expires_in: seconds }) {
  return halfway(`A code is on its way by e-mail; it is valid for ${inWords(seconds)}. Nobody is signed in yet.`);
}

function option(method) {
  return el("option", { value: method }, METHODS[method] || method);
}
