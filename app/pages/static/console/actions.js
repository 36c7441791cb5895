// @ts-check
// What an entry of the audit log says happened.

import { hasText, t, textKeys } from "../base/i18n.js";

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
