// @ts-check
// What came of a visit to another service: connected, or confirmed to be the owner.

import { hasText, t } from "../base/i18n.js";
import { note } from "../base/page.js";

/** Says it, and takes it out of the address. */
export function showReturn() {
  const url = new URL(window.location.href);
  const outcome = url.searchParams.get("external_auth");
  const reason = `returned.error.${url.searchParams.get("code")}`;
  if (outcome === "linked") note("good", t("returned.linked"));
  if (outcome === "confirmed") note("good", t("returned.confirmed"));
  if (outcome === "error") note("warn", hasText(reason) ? t(reason) : t("returned.error"));
  url.searchParams.delete("external_auth");
  url.searchParams.delete("code");
  window.history.replaceState(null, "", url);
}
