// @ts-check
// What a new account or password needs: rules that the service has, too, said before it is asked.

import { byId, el, input } from "../base/dom.js";
import { explained } from "../base/errors.js";
import { mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice } from "../base/problem.js";
import { withReturnPath } from "../base/return_path.js";
import { MAX_LENGTH, MIN_LENGTH } from "../base/rules.js";

/** @import { Refusal } from "../base/api.js" */

/** From here on the bar is full. */
const LONG_LENGTH = 16;

/** Fields by code, for `handle`. */
export const FIELDS = {
  "auth.username_exists": "username",
  "auth.email_blocked": "email",
  "auth.email_not_allowlisted": "email",
};

/** Shows how long the passwords on the page are, below their fields. */
export function measure() {
  for (const bar of document.querySelectorAll("[data-measures]")) {
    const name = String(/** @type {HTMLElement} */ (bar).dataset.measures);
    const filled = /** @type {HTMLElement} */ (bar.firstElementChild);
    const hint = byId(`${name}-hint`);
    const rule = hint.textContent;
    const update = () => {
      const { length } = [...input(name).value];
      filled.style.inlineSize = `${Math.min(length / LONG_LENGTH, 1) * 100}%`;
      bar.classList.toggle("enough", length >= MIN_LENGTH && length <= MAX_LENGTH);
      hint.textContent =
        length && length < MIN_LENGTH ? t("password.more", { count: MIN_LENGTH - length }) : rule;
    };
    input(name).addEventListener("input", update);
    update(); // browsers keep what was typed when a page is loaded again
  }
}

/**
 * Deals with what is refused where an account or a password is made; returns whether it did.
 * @param {Refusal} refusal
 * @param {{ password: string, doubt: string }} about the name of the password's field, and the key
 *   of what to say when nobody knows whether it was saved
 */
export function dealtWith(refusal, { password, doubt }) {
  if (refusal.code === "bad_request" && isAboutPassword()) {
    const { text, words } = explained(refusal);
    const isOfName =
      refusal.msg.includes("username") &&
      document.getElementById("username")?.matches(":not([hidden])");
    const field = input(isOfName ? "username" : password);
    mark(field, text, words);
    field.focus();
    return true;
  }
  if (refusal.code === "auth.email_exists" && document.getElementById("email")) {
    mark(input("email"), t("error.auth.email_exists"));
    byId("email-error").append(" ", el("a", { href: withReturnPath("/login") }, t("login.title")));
    input("email").focus();
    return true;
  }
  if (!refusal.isPassing || !navigator.onLine) return false;
  showNotice(t(doubt), { kind: "warn", actions: [toSignIn()] });
  return true;
}

/** Fields have been checked: what is left are addresses that only the service can judge. */
function isAboutPassword() {
  const email = /** @type {HTMLInputElement | null} */ (document.getElementById("email"));
  return !email || /^[\0-\x7f]*$/.test(email.value);
}

/** @param {string} [style] */
export function toSignIn(style) {
  return el("a", { href: withReturnPath("/login"), class: style }, t("to_sign_in"));
}
