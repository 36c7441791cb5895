// @ts-check
// What an account prefers, for the documents of these pages: they know no account, but two cookies.

import { call, meanFor } from "./api.js";
import { remember } from "./kept.js";
import { language as here } from "./i18n.js";
import { tellWhoIsHere } from "./session.js";

/** @import { Me } from "./session.js" */

/**
 * Remembers language and colours of the account that has just signed in; one without a language
 * gets that of the page. A failure changes nothing.
 * @param {Pick<Me, "id" | "preferences"> | null} [known] asked for unless given
 * @returns {Promise<boolean>} whether the page looks otherwise now
 */
export async function adoptPreferences(known = null) {
  const me =
    known ??
    (await call("get", "/auth/me", { query: { fields: "preferences" } }).catch(() => null));
  if (me) {
    meanFor(me.id);
    tellWhoIsHere(me.id);
  }
  const { language, theme_mode } = me?.preferences ?? {};
  const offered = [...document.querySelectorAll("#language option")].map(
    (one) => /** @type {HTMLOptionElement} */ (one).value,
  );
  if (me && !language)
    await call("patch", "/auth/preferences", { body: { language: here } }).catch(() => undefined);
  const read =
    offered.find((one) => one === language) ??
    offered.find((one) => primary(one) === primary(language));
  if (read) remember("service_language", read);
  const shown = document.documentElement.dataset.theme;
  if (theme_mode) remember("service_theme", theme_mode);
  return (read ?? here) !== here || (theme_mode ?? shown) !== shown;
}

/** @param {string | null | undefined} tag */
function primary(tag) {
  return tag?.split("-")[0]?.toLowerCase();
}
