// @ts-check
// The picture of an account, or the first letters of its name.

import { el } from "../base/dom.js";

/**
 * @param {string} name
 * @param {string | null | undefined} url below the API; what is elsewhere is not loaded
 * @param {"" | "large"} [size]
 */
export function avatar(name, url, size = "") {
  const isOwn = url?.startsWith("/");
  if (isOwn)
    return el("img", {
      class: `avatar ${size}`.trimEnd(),
      src: `/api/v1${url}`,
      alt: "",
      loading: "lazy",
      decoding: "async",
    });
  return el("span", { class: `avatar ${size}`.trimEnd(), "aria-hidden": "true" }, initials(name));
}

/** @param {string} name */
function initials(name) {
  const words = name.split(/[\s._-]+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0] ?? "?"];
  return letters
    .map((word) => [...String(word)][0])
    .join("")
    .toUpperCase();
}
