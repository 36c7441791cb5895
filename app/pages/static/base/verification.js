// @ts-check
// What came of a link in a mail: the service leads here from it, with the outcome in the address.

import { t } from "./i18n.js";
import { note } from "./page.js";

/** @type {Record<string, "good" | "warn">} */
const OUTCOMES = {
  "register-activated": "good",
  "email-changed": "good",
  missing: "warn",
  invalid: "warn",
  expired: "warn",
};
const MAX_ADDRESS_LENGTH = 254;

/**
 * Says it above the content. The text is ours; of the address only an e-mail address is shown.
 * @param {URLSearchParams} address
 * @param {object} how
 * @param {(outcome: string) => HTMLElement | false} [how.action] what can be done about it
 * @param {Record<string, string>} [how.own] keys of texts by outcome, where a page knows better
 */
export function showVerification(address, { action = () => false, own = {} } = {}) {
  const outcome = address.get("contact_verification") ?? "";
  const kind = Object.hasOwn(OUTCOMES, outcome) && OUTCOMES[outcome];
  if (!kind) return;
  const email = (address.get("email") ?? "").slice(0, MAX_ADDRESS_LENGTH);
  const key =
    outcome === "email-changed" && !email ? "outcome.email-changed.unnamed" : `outcome.${outcome}`;
  note(kind, t(own[outcome] ?? key, { email }), action(outcome));
}
