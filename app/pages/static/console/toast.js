// @ts-check
// Says that something is done: for six seconds to the eye, and once to screen readers.

import { byId, el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";

const SHOWN_MS = 6000;

/** @param {string} text */
export function toast(text) {
  const close = el(
    "button",
    { type: "button", class: "quiet", "aria-label": t("dismiss"), click: () => box.remove() },
    icon("close"),
  );
  const box = el("div", { class: "toast" }, icon("done"), el("p", {}, text), close);
  const host = byId("toasts");
  host.replaceChildren(box);
  host.classList.remove("above");
  if (isOver(box, document.activeElement)) host.classList.add("above");
  // Whoever reads it with the pointer on it or by keyboard has the time for that.
  const wait = () =>
    setTimeout(() => (box.matches(":hover, :focus-within") ? wait() : box.remove()), SHOWN_MS);
  wait();
}

/**
 * Whether it would hide what was just used.
 * @param {Element} box
 * @param {Element | null} used
 */
function isOver(box, used) {
  if (!used || used === document.body) return false;
  const [one, other] = [box.getBoundingClientRect(), used.getBoundingClientRect()];
  return (
    one.left < other.right &&
    one.right > other.left &&
    one.top < other.bottom &&
    one.bottom > other.top
  );
}
