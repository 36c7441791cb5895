// @ts-check
// The box above a form that says why something did not work, and what to do.

import { Refusal } from "./api.js";
import { byId, el, replace, say } from "./dom.js";
import { explained, sentences, waitText } from "./errors.js";
import { t } from "./i18n.js";
import { icon } from "./icons.js";

/** @type {ReturnType<typeof setInterval> | undefined} */
let ticking;

/**
 * Shows why something failed, and moves the focus there.
 * @param {unknown} error
 * @param {{ own?: Record<string, string>, actions?: HTMLElement[], isQuiet?: boolean }} [how] `own`
 *   are keys of texts by code, for what the page knows better; `actions` are buttons and links; a
 *   quiet one leaves the focus where somebody may be typing
 */
export function showProblem(error, { own = {}, actions = [], isQuiet = false } = {}) {
  const isLimit = error instanceof Refusal && error.status === 429 && error.retryAfter > 0;
  if (isLimit && !(error.code in own)) return showWait(error.retryAfter, isQuiet);
  const explanation = explained(error, own);
  const details = explanation.hasDetails && error instanceof Refusal && detailsOf(error);
  const all = [...actions, ...waysOut(error)];
  show("bad", sentences(explanation), { actions: all, details, isQuiet });
}

/**
 * Where the session is over: signing in in another tab, so that what was typed in this one is kept.
 * Where the page itself fails, as without a part that did not arrive: loading it again.
 * @param {unknown} error
 */
function waysOut(error) {
  if (!(error instanceof Refusal))
    return [
      el(
        "button",
        { type: "button", class: "secondary small", click: () => window.location.reload() },
        t("load_again"),
      ),
    ];
  const isOver = error.isSignedOut && document.getElementById("sign-out");
  return isOver ? [el("a", { href: "/login", target: "_blank" }, t("sign_in.other_tab"))] : [];
}

/**
 * Shows why something failed in the dialog in which it was tried; what lies below cannot be seen.
 * @param {Element} dialog
 * @param {unknown} error
 * @param {Record<string, string>} [own] as in showProblem
 */
export function showProblemIn(dialog, error, own) {
  const ways = waysOut(error).flatMap((way) => [" ", way]);
  clearProblem();
  const box = el(
    "p",
    { class: "field-error", id: "dialog-problem", role: "alert" },
    ...sentences(explained(error, own)),
    ...ways,
  );
  dialog.querySelector(".dialog-actions")?.before(box);
}

/**
 * Shows a text that is known already, in the same place.
 * @param {string} text
 * @param {{ kind?: "bad" | "warn" | "good", actions?: HTMLElement[], isQuiet?: boolean }} [how]
 *   `isQuiet` as in showProblem
 */
export function showNotice(text, { kind = "bad", actions = [], isQuiet = false } = {}) {
  show(kind, [text], { actions, isQuiet });
}

export function clearProblem() {
  clearInterval(ticking);
  const box = byId("problem");
  box.hidden = true;
  replace(box);
  document.getElementById("dialog-problem")?.remove();
}

/**
 * @param {string} kind
 * @param {import("./dom.js").Child[]} text
 * @param {{ actions?: HTMLElement[], details?: HTMLElement | false, isQuiet?: boolean }} [how]
 */
function show(kind, text, { actions = [], details = false, isQuiet = false } = {}) {
  clearInterval(ticking);
  const box = byId("problem");
  box.className = `problem ${kind}`;
  box.hidden = false;
  replace(
    box,
    icon(kind === "good" ? "done" : "problem"),
    el(
      "div",
      {},
      el("p", {}, ...text),
      actions.length > 0 && el("p", { class: "actions" }, ...actions),
      details,
    ),
  );
  if (!isQuiet) box.focus();
}

/**
 * Counts down for the eye; said aloud are only beginning and end.
 * @param {number} seconds
 * @param {boolean} isQuiet
 */
function showWait(seconds, isQuiet) {
  const ends = Date.now() + seconds * 1000;
  const seen = el("span", { "aria-hidden": "true" });
  show("warn", [seen, el("span", { class: "visually-hidden" }, waitText(seconds))], { isQuiet });
  const tick = () => {
    const left = Math.ceil((ends - Date.now()) / 1000);
    if (left > 0) seen.textContent = waitText(left);
    else show("good", [t("error.wait_over")], { isQuiet: true });
  };
  tick();
  ticking = setInterval(tick, 1000);
}

/** @param {Refusal} refusal */
function detailsOf({ code, status, requestId }) {
  const at = new Date().toISOString();
  const { origin = "" } = document.documentElement.dataset;
  const here = window.location.origin;
  const place = origin && origin !== here ? `${here} (${origin})` : here;
  const lines = [code, status ? `HTTP ${status}` : "", at, place, requestId].filter(Boolean);
  return el(
    "details",
    {},
    el("summary", {}, t("details")),
    el("ul", {}, ...lines.map((line) => el("li", {}, line))),
    copyButton(lines.join("\n"), { class: "link" }),
  );
}

/**
 * A button that copies a text, such as such details; false where pages have no clipboard, as
 * without https.
 * @param {string} text
 * @param {Record<string, unknown>} [attributes]
 */
export function copyButton(text, attributes) {
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    node.textContent = t("copied");
    say(t("copied"));
  };
  const node = el(
    "button",
    { type: "button", class: "secondary", click: copy, ...attributes },
    t("copy"),
  );
  return "clipboard" in navigator && node;
}
