// @ts-check
// Rules of names, addresses and passwords that the service has, too, said before it is asked.

import { t } from "./i18n.js";

export const MIN_LENGTH = 8;
export const MAX_LENGTH = 128;
const USERNAME = /^[\w.-]{2,64}$/;
const LOCAL_PART = /^("?)[\w.!#$%&'*+/=?^`{|}~-]{1,64}\1$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * Checks by the name of a field, for `handle`.
 * @type {Record<string, (value: string) => string>}
 */
export const CHECKS = {
  username: (value) => (USERNAME.test(value.trim()) ? "" : t("username.invalid")),
  email: (value) => (looksLikeAddress(value) ? "" : t("email.invalid")),
  password: passwordComplaint,
  new_password: passwordComplaint,
};

/** @param {string} value */
function passwordComplaint(value) {
  const { length } = [...value];
  if (length > MAX_LENGTH) return t("password.long");
  return length < MIN_LENGTH ? t("password.short", { count: MIN_LENGTH - length }) : "";
}

/**
 * Whether it may be an address; only the service can judge international domains.
 * @param {string} value
 */
function looksLikeAddress(value) {
  const at = value.trim().lastIndexOf("@");
  const labels = value
    .trim()
    .slice(at + 1)
    .split(".");
  const areFine =
    labels.length > 1 && labels.every((label) => LABEL.test(label) || /[^\0-\x7f]/.test(label));
  const local = value.trim().slice(0, Math.max(at, 0));
  return LOCAL_PART.test(local) && !local.includes("=?") && areFine;
}
