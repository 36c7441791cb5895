// @ts-check
// Signs in to an account that has just been made, with what was typed for it.

import { call, Refusal } from "../base/api.js";
import { t } from "../base/i18n.js";
import { csrfToken, staysSignedIn } from "../base/kept.js";
import { leaveFor } from "../base/page.js";
import { adoptPreferences } from "../base/preferences.js";
import { showNotice } from "../base/problem.js";
import { onDemand } from "../base/retry.js";
import { afterSignIn, withReturnPath } from "../base/return_path.js";

/**
 * @param {string} identifier
 * @param {string} password
 * @param {{ outcome: string, to?: string, email?: string, back?: () => void }} how `outcome` is
 *   told by the sign-in page, where this leads if the account is there but the sign-in does not
 *   succeed; `email` and `back` as of pendingActivation
 */
export async function enter(identifier, password, { outcome, to = afterSignIn(), ...waiting }) {
  try {
    const body = { identifier, password, remember: staysSignedIn() };
    await call("post", "/auth/login", { body });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "auth.pending_activation") {
      return leaveFor(withReturnPath(`/login?${outcome}=1`));
    }
    const { pendingActivation } = await onDemand(() => import("./pending.js"));
    return pendingActivation(identifier, waiting);
  }
  if (!csrfToken()) return showNotice(t("error.no_cookies"));
  // The language of this page becomes the account's, so that other devices show it, too.
  await adoptPreferences().catch(() => undefined);
  return leaveFor(to);
}
