// @ts-check
// Where a sign-in leads, as far as an address may decide that.

const MAX_LENGTH = 2048;

/**
 * Returns the path if it is one of this site, else "".
 * @param {string | null | undefined} typed
 */
export function safePath(typed) {
  const path = typed ?? "";
  const isLocal = /^\/(?![/\\])[^\\\p{Cc}\p{Zl}\p{Zp}]*$/u.test(path) && path.length <= MAX_LENGTH;
  if (!isLocal) return "";
  return new URL(path, window.location.origin).origin === window.location.origin ? path : "";
}

function wanted() {
  return safePath(new URLSearchParams(window.location.search).get("return_path"));
}

/** Where to go after a sign-in: `return_path` of the address, else the home path. */
export function afterSignIn() {
  return wanted() || document.documentElement.dataset.home || "/";
}

/**
 * The path of a page that leads on to where this one was to lead.
 * @param {string} path
 */
export function withReturnPath(path) {
  if (!wanted()) return path;
  return `${path}${path.includes("?") ? "&" : "?"}return_path=${encodeURIComponent(wanted())}`;
}

/** The sign-in page, leading back here. */
export function signInPath() {
  const here = window.location.pathname + window.location.search;
  return `/login?return_path=${encodeURIComponent(here)}`;
}
