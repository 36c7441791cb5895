// @ts-check
// Entries of the audit log: one line each, or all that is known.

import { el } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { actionText } from "../console/actions.js";
import { avatar } from "../console/avatar.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/audit-logs">["items"][number]} Entry */

/**
 * Who did it: an account, the command line, or the service itself.
 * @param {Entry} entry
 */
export function actorOf({ user, user_id: id }) {
  if (user)
    return el(
      "a",
      { class: "person", href: `/admin/users/${user.id}` },
      avatar(nameOf(user), null),
      el("span", {}, nameOf(user)),
    );
  return el(
    "span",
    { class: "person" },
    el("span", {}, id ? t("audit.gone", { id }) : t("audit.system")),
  );
}

/**
 * The name that nobody else has comes first: people choose what they are called.
 * @param {NonNullable<Entry["user"]>} user
 */
function nameOf({ username, profile }) {
  const shown = profile?.display_name;
  return shown && shown !== username ? `${username} (${shown})` : username;
}

/** @param {Entry} entry */
export function eventLine(entry) {
  const about = entry.entity_name ? ` · ${entry.entity_name}` : "";
  const time = el(
    "time",
    { datetime: entry.created_at, title: moment(entry.created_at), class: "hint" },
    ago(entry.created_at),
  );
  return el(
    "li",
    {},
    el("span", {}, el("strong", {}, actionText(entry.action)), about),
    el("span", { class: "event-by" }, actorOf(entry), time),
  );
}

/**
 * The details as pairs; they are JSON text, which a later version may have written otherwise.
 * @param {string | null} details
 * @returns {[string, string][]}
 */
export function detailPairs(details) {
  if (!details) return [];
  try {
    const found = JSON.parse(details);
    if (found === null || typeof found !== "object" || Array.isArray(found)) return [["", details]];
    return Object.entries(found).map(([name, value]) => [
      name.replaceAll("_", " "),
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
  } catch {
    return [["", details]];
  }
}

/**
 * Columns of a short list of entries.
 * @returns {import("../console/table.js").Column<Entry>[]}
 */
export function eventColumns() {
  return [
    { label: t("audit.action"), cell: ({ action }) => actionText(action) },
    { label: t("audit.by"), cell: actorOf },
    {
      label: t("audit.time"),
      cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, ago(at)),
    },
  ];
}
