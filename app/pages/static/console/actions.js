// @ts-check
// What an entry of the audit log says happened.

import { el } from "../base/dom.js";
import { hasText, rich, t, textKeys } from "../base/i18n.js";

/** @typedef {Record<string, unknown>} Details */

/**
 * An action in words; one that this version does not know keeps its name.
 * @param {string} action
 */
export function actionText(action) {
  return hasText(`action.${action}`) ? t(`action.${action}`) : action.replaceAll("_", " ");
}

/**
 * The actions of which people see entries in their own activity, with their words.
 * @returns {[string, string][]}
 */
export function ownActions() {
  const own = textKeys("action.user_").map(
    (key) => /** @type {[string, string]} */ ([key.slice("action.".length), t(key)]),
  );
  return own.sort(([, one], [, other]) => one.localeCompare(other));
}

/**
 * An entry as a sentence, in which actor and name may be elements.
 * @param {string} action
 * @param {{ actor: string | Node, name: string | Node, details?: Details }} about
 */
export function eventSentence(action, { actor, name, details = {} }) {
  const own = `event.${action}.${kindOf(action, details)}`;
  const key = hasText(own) ? own : `event.${action}`;
  if (!hasText(key)) return [actionText(action)];
  const before = t(`role.${details.previous_role}`);
  return rich(key, { actor, name, before, after: t(`role.${details.role}`) });
}

/** A name in a sentence. */
export function named(/** @type {string} */ text) {
  return el("strong", {}, text);
}

/**
 * A sentence in which names stand out.
 * @param {(string | Node)[]} parts
 */
export function sentence(parts) {
  return el("span", { class: "sentence" }, ...parts);
}

/**
 * What an entry without a name is about.
 * @param {number | null} [id]
 */
export function unnamed(id) {
  return id ? t("event.number", { id: String(id) }) : t("event.unnamed");
}

/**
 * Tells apart what one action may be, where there is a sentence for each.
 * @param {string} action
 * @param {Details} details
 */
function kindOf(action, { action: what, changed_fields: changed, ...now }) {
  if (action === "config_action_execute") return String(what);
  if (action !== "admin_update_user" || !Array.isArray(changed) || changed.length > 1) return "";
  const name = String(changed[0]);
  if (name === "status") return String(now.status);
  return now[name] === false ? "" : name; // a new password that is not required any more
}
