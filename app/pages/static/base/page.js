// @ts-check
// What every page begins with: texts, theme, language, and what keeps it from working here.

import { cookie, remember } from "./kept.js";
import { breakable, byId, el, input } from "./dom.js";
import { language, loadTexts, rich, t } from "./i18n.js";
import { icon } from "./icons.js";
import { showProblem } from "./problem.js";
import { withReturnPath } from "./return_path.js";

/** @import { Icon } from "./icons.js" */

const root = document.documentElement;

/**
 * Prepares the page and runs it.
 * @param {() => void | Promise<void>} run
 */
export async function start(run) {
  // A page that comes back with the back button may show what is not so any more.
  window.addEventListener("pageshow", ({ persisted }) => persisted && window.location.reload());
  if (rememberLanguage()) return;
  offerThemes();
  try {
    await loadTexts();
  } catch {
    return settle(false);
  }
  settle(true);
  for (const button of document.querySelectorAll("[data-reveals]")) {
    const name = String(/** @type {HTMLElement} */ (button).dataset.reveals);
    reveal(/** @type {HTMLElement} */ (button), input(name));
  }
  for (const node of document.querySelectorAll("[data-icon]"))
    node.prepend(icon(/** @type {Icon} */ (/** @type {HTMLElement} */ (node).dataset.icon)));
  for (const link of document.querySelectorAll("[data-returns]"))
    carryOn(/** @type {HTMLAnchorElement} */ (link));
  warnOfAddress();
  try {
    await run();
  } catch (error) {
    showProblem(error);
  }
}

/**
 * Hides what the document says in case parts of the page do not arrive, unless they did not; and
 * says what was noted for this load alone.
 * @param {boolean} hasTexts
 */
function settle(hasTexts) {
  const box = byId("incomplete");
  if (!hasTexts) root.dataset.incomplete = "";
  box.hidden = root.dataset.incomplete === undefined;
  box.querySelector("a")?.addEventListener("click", (event) => {
    event.preventDefault();
    window.location.reload(); // the link would drop what is noted in the state
  });
  const { notice, ...rest } = window.history.state ?? {};
  const url = new URL(window.location.href);
  if (url.hash === "#unsent") url.hash = "";
  window.history.replaceState(rest, "", url);
  if (notice && hasTexts) note("warn", t(notice));
  if (document.readyState === "complete") endRetry();
  else window.addEventListener("load", endRetry, { once: true }); // a style may be missing yet
}

/** All parts are there: what is missing another time is asked for again, see arrival.js. */
function endRetry() {
  if (root.dataset.incomplete !== undefined) return;
  const state = { ...window.history.state };
  delete state.isRetry;
  window.history.replaceState(state, "");
}

/** The number at the end of the address. */
export function idOfAddress() {
  return String(window.location.pathname.split("/").at(-1));
}

/**
 * Names a page of a console after what it shows.
 * @param {string} name
 * @param {string} [lead] what stands below it
 */
export function entitle(name, lead) {
  byId("title").replaceChildren(name);
  if (lead !== undefined) byId("lead").replaceChildren(lead);
  for (const id of ["title", "lead"]) breakable(byId(id));
  setTitle(name);
}

/** @param {string} text */
export function setTitle(text) {
  document.title = `${text} – ${root.dataset.site}`;
}

/**
 * Says something above the content that is not the answer to what was just done.
 * @param {"good" | "warn" | "info"} kind
 * @param {...import("./dom.js").Child} content the last may be a button
 */
export function note(kind, ...content) {
  const mark = icon(kind === "good" ? "done" : "problem");
  // Another step may have taken the place of what it belongs to.
  document
    .getElementById("notes")
    ?.append(el("div", { class: `note ${kind}`, role: "status" }, mark, el("p", {}, ...content)));
}

/** Goes to another address; what follows is not to be run any more. */
export function leaveFor(/** @type {string} */ path) {
  window.location.assign(path);
  return new Promise(() => undefined);
}

/** @param {HTMLAnchorElement} link */
function carryOn(link) {
  link.href = withReturnPath(String(link.getAttribute("href")));
}

/** Returns whether the page is being loaded again, in the language that was chosen meanwhile. */
function rememberLanguage() {
  const picker = /** @type {HTMLSelectElement | null} */ (document.getElementById("language"));
  if (new URLSearchParams(window.location.search).get("lang") === language)
    remember("service_language", language);
  if (!picker) return false;
  const choose = () => {
    const url = new URL(window.location.href);
    if (remember("service_language", picker.value)) url.searchParams.delete("lang");
    else url.searchParams.set("lang", picker.value);
    // Unlike an address, a load keeps what the state has: the token of a mailed link.
    window.history.replaceState(window.history.state, "", url);
    window.location.reload();
  };
  picker.addEventListener("change", choose);
  const isEarly = !picker.selectedOptions[0]?.defaultSelected; // chosen before this was there
  if (isEarly) choose();
  return isEarly;
}

function offerThemes() {
  const picker = /** @type {HTMLSelectElement | null} */ (document.getElementById("theme"));
  if (!picker) return;
  picker.value = cookie("service_theme") || "system";
  picker.addEventListener("change", () => useTheme(picker.value));
}

/**
 * Shows a theme from now on, also in the browser's own bars.
 * @param {string} theme
 */
export function useTheme(theme) {
  root.dataset.theme = theme;
  remember("service_theme", theme);
  const color = getComputedStyle(root).getPropertyValue("--card");
  for (const bar of document.querySelectorAll("meta[name=theme-color]"))
    bar.setAttribute("content", color);
}

/**
 * Makes a button show and hide a password.
 * @param {HTMLElement} button
 * @param {HTMLInputElement} field
 */
export function reveal(button, field) {
  const show = (/** @type {boolean} */ isShown) => {
    field.type = isShown ? "text" : "password";
    button.setAttribute("aria-pressed", String(isShown));
    button.replaceChildren(icon(isShown ? "hidden" : "shown"));
  };
  show(false);
  button.hidden = false;
  button.addEventListener("click", () => show(field.type === "password"));
  // A shown password must not be kept among what the browser suggests for texts.
  field.form?.addEventListener("submit", () => show(false));
  warnOfCapsLock(field);
}

/** @param {HTMLInputElement} field */
function warnOfCapsLock(field) {
  const hint = el("p", { class: "hint caps", hidden: true }, t("password.caps_lock"));
  field.closest(".field")?.append(hint);
  for (const type of /** @type {const} */ (["keydown", "keyup"])) {
    field.addEventListener(type, (event) => (hint.hidden = !event.getModifierState?.("CapsLock")));
  }
  field.addEventListener("blur", () => (hint.hidden = true));
}

/** Cookies and passkeys of localhost are not those of 127.0.0.1. */
function warnOfAddress() {
  const { origin } = root.dataset;
  const here = window.location;
  if (!origin || origin === here.origin || !/^(127\.|\[::1\]|localhost$)/.test(here.hostname))
    return;
  const url = origin + here.pathname + here.search;
  note("warn", ...rich("wrong_address", { link: el("a", { href: url }, origin) }));
}
