// @ts-check
// Says who is signed in where a new account would take their place.

import { t } from "../base/i18n.js";
import { note } from "../base/page.js";
import { whoIsSignedIn } from "../base/session.js";

export async function noteWhoIsSignedIn() {
  const me = await whoIsSignedIn().catch(() => null); // the form works without knowing
  if (me) note("info", t("new.signed_in", { name: me.username }));
}
