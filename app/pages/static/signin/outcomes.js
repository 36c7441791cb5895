// @ts-check
// What brought somebody to the sign-in page: values of the address that the service or a page set.
// Texts come from the catalogue, never from the address; of that only an e-mail address is shown.

import { el } from "../base/dom.js";
import { keyOf } from "../base/errors.js";
import { act } from "../base/form.js";
import { hasText, t } from "../base/i18n.js";
import { note } from "../base/page.js";
import { onDemand } from "../base/retry.js";
import { showVerification } from "../base/verification.js";

const WITH_NEW_MAIL = new Set(["invalid", "expired"]);
const OURS = ["signed_out", "reset", "registered", "accepted", "deleted"];
/** Its text speaks of a password, which nobody has typed. */
const NAMES_A_PASSWORD = "auth.credentials_failed";

/** @param {URLSearchParams} address */
export function showOutcome(address) {
  showVerification(address, { action: (outcome) => WITH_NEW_MAIL.has(outcome) && newMail() });
  const external = address.get("external_auth") ?? "";
  if (external === "error") note("warn", externalError(address.get("code") ?? ""));
  else if (hasText(`outcome.external.${external}`)) note("warn", t(`outcome.external.${external}`));
  for (const name of OURS) if (address.get(name) === "1") note("good", t(`outcome.${name}`));
}

function newMail() {
  const ask = async () => (await onDemand(() => import("./pending.js"))).askForMail();
  const button = el("button", { type: "button", class: "link" }, t("pending.new"));
  button.addEventListener("click", () => act(button, t("pending.new"), ask));
  return button;
}

/** @param {string} code */
function externalError(code) {
  const key = code !== NAMES_A_PASSWORD && code && keyOf(code, 400);
  return key && key !== "error.fault" ? t(key) : t("outcome.external.error");
}
