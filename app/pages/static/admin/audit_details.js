// @ts-check
// What an entry of the audit log says beyond its sentence, in words.

import { el } from "../base/dom.js";
import { moment, size } from "../base/format.js";
import { english, hasText, t } from "../base/i18n.js";
import { amount } from "./amounts.js";
import { detailsOf } from "./events.js";

/** @typedef {import("../base/dom.js").Child} Child */
/** @typedef {import("./events.js").Entry} Entry */

/** Names that have a text elsewhere. @type {Record<string, string>} */
const KNOWN = {
  role: "users.role",
  next_role: "users.role",
  removed_role: "users.role",
  status: "users.status",
  email: "users.email",
  new_email: "users.email",
  to_address: "mail.recipient",
  template_code: "mail.template",
  subject: "template.subject",
  storage_quota: "quota.label",
  name: "users.name",
  display_name: "users.name",
  description: "teams.description",
  policy_group_id: "users.group",
  must_change_password: "user.must_change",
  email_verified: "user.verified",
  email_verified_at: "user.verified",
  provider_kind: "provider.kind",
  issuer: "provider.issuer_url",
  template: "mail.template",
  since: "audit.after",
  until: "audit.before",
  user_id: "audit.user_id",
  entity_type: "audit.type",
  ip_address: "audit.address",
  keyword: "audit.search",
};
/** Numbers that say nothing to a reader, and what the sentence has already; exports have them. */
const UNTOLD = new Set([
  "action",
  "flow_id",
  "link_id",
  "mail_id",
  "passkey_id",
  "policy_ids",
  "provider_name",
  "session_id",
  "source_group_id",
  "target_group_id",
]);
const DURATIONS = new Set(["expires_in", "resend_after"]);
const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/;

/**
 * The details as pairs of a name and what it is.
 * @param {Entry} entry
 * @returns {[string, Child][]}
 */
export function detailPairs(entry) {
  const type = entry.entity_type;
  return Object.entries(detailsOf(entry))
    .filter(([name]) => !UNTOLD.has(name))
    .map(([name, value]) => [
      nameText(name, type),
      valueText(name.replace(/^previous_/, ""), value, type),
    ]);
}

/**
 * @param {string} name
 * @param {string} type
 * @returns {string}
 */
function nameText(name, type) {
  const before = /^previous_(.+)/.exec(name)?.[1];
  if (before) return t("detail.before", { name: nameText(before, type) });
  const key = [
    type === "external_auth_provider" && `provider.${name}`,
    type === "external_auth_identity" && name === "subject" && "detail.external_subject",
    `detail.${name}`,
    KNOWN[name],
  ].find((one) => one && hasText(one));
  return key ? t(key) : name.replaceAll("_", " ");
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {string} type
 * @returns {Child}
 */
function valueText(name, value, type) {
  if (value === null || (Array.isArray(value) && value.length === 0)) return t("none");
  if (typeof value === "number" && name === "storage_quota") return size(value);
  if (typeof value === "number" && DURATIONS.has(name)) return amount(value, "seconds");
  if (name === "member_user_id") return el("a", { href: `/admin/users/${value}` }, String(value));
  if (Array.isArray(value)) return value.map((one) => wordOf(name, one, type)).join(", ");
  if (value && typeof value === "object") {
    const pairs = Object.entries(value).map(([one, its]) => [
      nameText(one, type),
      wordOf(one, its, type),
    ]);
    return pairs.map((pair) => pair.join(": ")).join(", ");
  }
  const word = wordOf(name, value, type);
  if (word !== value && typeof value !== "number") return word;
  return el("span", { class: "mono" }, english(word));
}

/**
 * A value that has a word, or as it is.
 * @param {string} name
 * @param {unknown} value
 * @param {string} type
 */
function wordOf(name, value, type) {
  if (typeof value === "boolean") return t(value ? "detail.yes" : "detail.no");
  if (typeof value !== "string") return JSON.stringify(value);
  if (MOMENT.test(value)) return moment(value);
  if (type === "system_config" && ["true", "false"].includes(value))
    return t(value === "true" ? "settings.on" : "settings.off");
  if (name === "changed_fields") return nameText(value, type);
  const role = type === "team" ? "team_role" : "role";
  const place = /role$/.test(name) ? role : PLACES[name];
  return place && hasText(`${place}.${value}`) ? t(`${place}.${value}`) : value;
}

/** Where the words of values are. @type {Record<string, string>} */
const PLACES = {
  status: "user.status",
  template_code: "mail_template",
  template: "mail_template",
  entity_type: "entity",
  provider_kind: "kind",
  method: "detail.method",
  available_methods: "detail.method",
};
