// @ts-check
// What the browser keeps that scripts may read: cookies, and what is kept for the visitor's
// convenience. One that keeps nothing for sites forgets it with the page.

const YEAR_SECONDS = 31536000;

/**
 * @param {string} name
 * @returns {string} "" without the cookie
 */
export function cookie(name) {
  try {
    const found = document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`));
    return found ? found.slice(name.length + 1) : "";
  } catch {
    return ""; // some browsers refuse even to say that there is none
  }
}

/** The token of a session, or "": the cookie comes and goes with the session here. */
export function csrfToken() {
  return cookie("service_csrf");
}

/**
 * Remembers a choice for a year; returns whether the browser does.
 * @param {"service_language" | "service_theme"} name
 * @param {string} value
 */
export function remember(name, value) {
  const secure = window.location.protocol === "https:" ? "; secure" : "";
  try {
    document.cookie = `${name}=${value}; path=/; max-age=${YEAR_SECONDS}; samesite=lax${secure}`;
  } catch {
    return false;
  }
  return cookie(name) === value;
}

/** @type {Map<string, string>} */
const memory = new Map();

/**
 * Returns what was kept, or "".
 * @param {"localStorage" | "sessionStorage"} store for all tabs, or for this one
 * @param {string} key
 */
export function kept(store, key) {
  try {
    return window[store].getItem(key) ?? "";
  } catch {
    return memory.get(key) ?? "";
  }
}

const SHORT = "short_session";

/** Whether sessions that begin in this browser are to outlast its window: its last choice. */
export function staysSignedIn() {
  return !kept("localStorage", SHORT);
}

/** @param {boolean} isWanted */
export function chooseToStay(isWanted) {
  keep("localStorage", SHORT, isWanted ? "" : "1");
}

/** Forgets what this tab kept: it is of somebody who has gone. */
export function forget() {
  memory.clear();
  try {
    window.sessionStorage.clear();
  } catch {
    // there is none
  }
}

/**
 * @param {"localStorage" | "sessionStorage"} store
 * @param {string} key
 * @param {string} value "" to keep nothing any more
 */
export function keep(store, key, value) {
  try {
    if (value) window[store].setItem(key, value);
    else window[store].removeItem(key);
  } catch {
    memory.set(key, value);
  }
}
