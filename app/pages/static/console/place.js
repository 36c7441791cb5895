// @ts-check
// Rows that open by a click anywhere in them, and the way back to the same place of the list.

import { keep, kept } from "../base/kept.js";

/**
 * Where somebody was in a list when a row was opened.
 * @typedef {{ search: string, opened: string, top: number }} Place
 */

const ROWS = "tbody tr, .cards > li";
const OPENERS = "th a[href], th button, h2 a[href]";
const OTHERS = "a, button, input, select, textarea, label, summary, .select";

/**
 * A click in a row does what its first link or button does; who comes back from there is where the
 * row was.
 * @param {HTMLElement} host of the list, which is drawn
 */
export function openRows(host) {
  comeBack(host);
  host.classList.add("opens");
  host.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const row = target.closest(ROWS);
    const opener = /** @type {HTMLElement | null} */ (row?.querySelector(OPENERS));
    if (!opener) return;
    if (opener.contains(target)) {
      if (!isElsewhere(event)) note(opener);
      return;
    }
    const isMeant = !target.closest(OTHERS) && (window.getSelection()?.isCollapsed ?? true);
    if (!isMeant) return;
    const href = opener.getAttribute("href");
    if (isElsewhere(event) && href) window.open(href, "_blank", "noopener");
    else opener.click();
  });
}

/** @param {HTMLElement} host */
function comeBack(host) {
  const { place: left, ...rest } = window.history.state ?? {};
  const returning = kept("sessionStorage", "returning");
  keep("sessionStorage", "returning", "");
  /** @type {Place | null} */
  const place = left ?? (returning === window.location.pathname ? placeOf(returning) : null);
  if (left) window.history.replaceState(rest, "");
  if (!place || place.search !== window.location.search) return;
  window.scrollTo({ top: place.top, behavior: "instant" });
  const opened = [...host.querySelectorAll(OPENERS)].find(
    (one) => one.getAttribute("href") === place.opened,
  );
  /** @type {HTMLElement | undefined} */ (opened)?.focus({ preventScroll: true });
}

/**
 * Leads back to the list as it was left.
 * @param {HTMLAnchorElement} link to the list
 */
export function offerWayBack(link) {
  const { pathname } = link;
  const place = placeOf(pathname);
  if (place) link.search = place.search;
  link.addEventListener("click", (event) => {
    if (!isElsewhere(event)) keep("sessionStorage", "returning", pathname);
  });
}

/** Whether a click opens another tab or window. */
function isElsewhere(/** @type {MouseEvent} */ { ctrlKey, metaKey, shiftKey }) {
  return ctrlKey || metaKey || shiftKey;
}

/** @param {HTMLElement} opener */
function note(opener) {
  const opened = opener.getAttribute("href");
  if (!opened) return;
  const { pathname, search } = window.location;
  const place = { search, opened, top: window.scrollY };
  window.history.replaceState({ ...window.history.state, place }, "");
  keep("sessionStorage", `place ${pathname}`, JSON.stringify(place));
}

/**
 * @param {string} path of a list
 * @returns {Place | null}
 */
function placeOf(path) {
  return JSON.parse(kept("sessionStorage", `place ${path}`) || "null");
}
