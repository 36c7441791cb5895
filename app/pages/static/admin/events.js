// @ts-check
// Entries of the audit log: one line each, or all that is known.

import { el } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { hasText, t } from "../base/i18n.js";
import { eventSentence, named, sentence, unnamed } from "../console/actions.js";
import { avatar } from "../console/avatar.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/audit-logs">["items"][number]} Entry */

/** What the service does by itself; otherwise an entry without an address is a command's. */
const OF_ITSELF = /^(server|mail)_/;

/**
 * Who did it: an account, the command line, or the service itself.
 * @param {Entry} entry
 */
export function actorOf(entry) {
  const { user } = entry;
  if (user)
    return el(
      "a",
      { class: "person", href: `/admin/users/${user.id}` },
      avatar(nameOf(user), null),
      el("span", {}, nameOf(user)),
    );
  return el("span", { class: "person" }, el("span", {}, otherActor(entry)));
}

/** @param {Entry} entry */
function otherActor({ user_id: id, ip_address: address, action }) {
  if (id) return t("event.deleted_account", { id: String(id) });
  if (address) return t("event.stranger");
  return t(OF_ITSELF.test(action) ? "event.system" : "event.cli");
}

/**
 * The name that nobody else has comes first: people choose what they are called.
 * @param {NonNullable<Entry["user"]>} user
 */
function nameOf({ username, profile }) {
  const shown = profile?.display_name;
  return shown && shown !== username ? `${username} (${shown})` : username;
}

/**
 * What happened as a sentence, in which the names may be elements.
 * @param {Entry} entry
 * @param {(text: string, href?: string) => string | Node} [shown] how an actor and what it is
 *   about are shown
 */
export function sentenceOf(entry, shown = (text) => text) {
  const { user, action } = entry;
  const details = detailsOf(entry);
  return eventSentence(action, {
    actor: user ? shown(nameOf(user), `/admin/users/${user.id}`) : shown(otherActor(entry)),
    name: shown(subjectOf(entry, details)),
    details,
  });
}

/**
 * What an entry is about: providers and settings have names for readers beside their keys.
 * @param {Entry} entry
 * @param {Record<string, unknown>} details
 */
function subjectOf({ entity_type: type, entity_name: name, entity_id: id }, details) {
  const setting = type === "system_config" && hasText(`setting.${name}`) && t(`setting.${name}`);
  const provider =
    details.provider_name ?? (type === "external_auth_provider" && details.display_name);
  return String(setting || provider || name || unnamed(id));
}

/** @param {Entry} entry */
export function eventLine(entry) {
  const shown = (/** @type {string} */ text, /** @type {string | undefined} */ href) =>
    href ? el("a", { href, class: "named" }, text) : named(text);
  return el(
    "li",
    {},
    sentence(sentenceOf(entry, shown)),
    el(
      "time",
      { datetime: entry.created_at, title: moment(entry.created_at), class: "hint" },
      ago(entry.created_at),
    ),
  );
}

/**
 * The details, which are JSON text; a later version may have written them otherwise.
 * @param {Entry} entry
 * @returns {Record<string, unknown>}
 */
export function detailsOf({ details }) {
  if (!details) return {};
  try {
    const found = JSON.parse(details);
    const isObject = found !== null && typeof found === "object" && !Array.isArray(found);
    return isObject ? found : { "": details };
  } catch {
    return { "": details };
  }
}

/**
 * Columns of a short list of entries.
 * @returns {import("../console/table.js").Column<Entry>[]}
 */
export function eventColumns() {
  return [
    { label: t("audit.action"), cell: (entry) => sentence(sentenceOf(entry, named)) },
    {
      label: t("audit.time"),
      cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, ago(at)),
    },
  ];
}
