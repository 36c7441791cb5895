// @ts-check
// Cookies that scripts may read: the CSRF token, and what the visitor chose for these pages.

const YEAR_SECONDS = 31536000;

/**
 * @param {string} name
 * @returns {string} "" without the cookie
 */
export function cookie(name) {
  const found = document.cookie.split("; ").find((pair) => pair.startsWith(`${name}=`));
  return found ? found.slice(name.length + 1) : "";
}

/** The token of a session, or "": the cookie comes and goes with the session here. */
export function csrfToken() {
  return cookie("service_csrf");
}

/**
 * Remembers a choice for a year.
 * @param {"service_language" | "service_theme"} name
 * @param {string} value
 */
export function remember(name, value) {
  const secure = window.location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=/; max-age=${YEAR_SECONDS}; samesite=lax${secure}`;
}
