// @ts-check
// What to say of a refusal: the key of its text.

import { Refusal } from "./api.js";
import { english, hasText, t, translated } from "./i18n.js";

/** Codes that share one text. @type {[RegExp, string][]} */
const FAMILIES = [
  [/^auth\.(csrf_|request_)|^validation\.request_/, "error.source"],
  [/^auth\.(token_|refresh_token_stale)/, "error.auth.token"],
  [
    /^(config\.public_site_url_|external_auth\.callback_redirect_uri_required)/,
    "error.site_address",
  ],
  [/^(mail\.|auth\.mfa_factor_required$)/, "error.mail"],
  [/^(database\.error|internal_server_error)$/, "error.fault"],
];
/** Seconds, where a limit does not say how many. */
const USUAL_WAIT = 60;
/** Texts for what an administrator has to look into. */
const WITH_DETAILS = new Set([
  "error.fault",
  "error.source",
  "error.config.error",
  "error.storage.unknown",
]);
/** Codes that stand for many conditions: the service's sentence says which. */
const SPOKEN_BY_SERVICE = new Set(["bad_request", "forbidden", "conflict"]);

/**
 * Returns the key of the text for a code and status; "" where the service's sentence says more.
 * @param {string} code
 * @param {number} status
 */
export function keyOf(code, status) {
  if (code === "network") return "error.network";
  if ([502, 503, 504].includes(status) && !code.startsWith("mail.")) return "error.busy";
  const family = FAMILIES.find(([pattern]) => pattern.test(code));
  if (family) return family[1];
  if (SPOKEN_BY_SERVICE.has(code)) return "";
  return hasText(`error.${code}`) ? `error.${code}` : "error.fault";
}

/**
 * Whether somebody cannot know if a change was made; forms of the sign-in pages know better.
 * @param {Refusal} error
 */
function isInDoubt({ isChange, status }) {
  return (
    isChange &&
    [0, 502, 504].includes(status) &&
    navigator.onLine &&
    document.querySelector(".console") !== null
  );
}

/** @param {number} seconds */
export function waitText(seconds) {
  const minutes = Math.floor(seconds / 60);
  const rest = String(seconds % 60).padStart(2, "0");
  const time = minutes > 0 ? `${minutes}:${rest}` : t("seconds", { count: seconds });
  return t("error.rate_limited", { time });
}

/**
 * A sentence of the service as a text of ours; where the catalogue lacks it, what its code says,
 * and the sentence as `words` in English.
 * @param {string} code one of those that stand for many conditions
 * @param {string} sentence
 */
export function spoken(code, sentence) {
  const text = translated(sentence);
  return text ? { text, words: "" } : { text: t(`error.${code}`), words: sentence };
}

/**
 * What to show of a failure. `words` are the service's own, in English; `details` are wanted where
 * somebody may have to look into it.
 * @param {unknown} error
 * @param {Record<string, string>} [own] keys of texts by code, where a page knows better
 * @returns {{ text: string, words: string, hasDetails: boolean }}
 */
export function explained(error, own = {}) {
  if (!(error instanceof Refusal)) return { text: t("error.script"), words: "", hasDetails: false };
  const key =
    own[error.code] ?? (isInDoubt(error) ? "error.doubt" : keyOf(error.code, error.status));
  if (!key) return { ...spoken(error.code, error.msg), hasDetails: false };
  if (key === "error.rate_limited")
    return { text: waitText(error.retryAfter || USUAL_WAIT), words: "", hasDetails: false };
  return { text: t(key), words: "", hasDetails: WITH_DETAILS.has(key) };
}

/**
 * A text, and behind it the service's own words.
 * @param {{ text: string, words: string }} explanation
 * @returns {import("./dom.js").Child[]}
 */
export function sentences({ text, words }) {
  return words ? [text, " ", english(words)] : [text];
}
