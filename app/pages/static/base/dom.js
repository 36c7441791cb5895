// @ts-check
// Builds elements, and says aloud what happened; text is always set as text, so nothing an answer
// says becomes markup.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * Attributes that are functions are listeners; false, null and undefined leave one out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function")
      node.addEventListener(name, /** @type {EventListener} */ (value));
    else if (value !== false && value != null)
      node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...kept(children));
  return node;
}

const LONG = /\S{16,}/g;
const MARK = "\u200b";
// A dot before the last few letters of an address stays with them.
const ENDS = new RegExp(
  [
    String.raw`[@_:/=&?-](?=[\p{L}\p{N}])`,
    String.raw`\.(?=[\p{L}\p{N}]{5}|[\p{L}\p{N}]+[.@_-])`,
    String.raw`[\p{L}\p{N}]{24}(?=[\p{L}\p{N}])`,
  ].join("|"),
  "gu",
);

/**
 * Lets lines end inside a long name, address or path where a reader expects it, and anywhere in
 * what is longer than any word. Copied, it is whole.
 * @template {Node} T
 * @param {T} node
 * @returns {T} the same
 */
export function breakable(node) {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = /** @type {Text[]} */ ([]);
  while (walk.nextNode()) texts.push(/** @type {Text} */ (walk.currentNode));
  for (const text of texts) {
    if (text.parentElement?.closest("textarea, select, svg")) continue;
    const [first, ...others] = text.data
      .replace(LONG, (word) => word.replace(ENDS, `$&${MARK}`))
      .split(MARK);
    if (others.length > 0)
      text.replaceWith(first ?? "", ...others.flatMap((part) => [el("wbr"), part]));
  }
  return node;
}

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/**
 * Who had the focus in it has it on the same control of the new content, as far as that has one.
 * @param {Element} host
 * @param {...(Child | Child[])} children
 */
export function replace(host, ...children) {
  const focused = host.contains(document.activeElement) ? document.activeElement : null;
  const place = focused ? [...host.querySelectorAll(FOCUSABLE)].indexOf(focused) : -1;
  host.replaceChildren(...kept(children));
  if (!focused || place < 0 || document.activeElement !== document.body) return;
  const all = /** @type {HTMLElement[]} */ (
    [...host.querySelectorAll(FOCUSABLE)].filter((one) => !one.matches("[disabled], [hidden]"))
  );
  const name = nameOf(focused);
  const same = name ? all.find((one) => nameOf(one) === name) : undefined;
  (same ?? all[Math.min(place, all.length - 1)])?.focus();
}

/** @param {Element} control */
function nameOf(control) {
  return control.id || control.getAttribute("aria-label");
}

/** @param {(Child | Child[])[]} children */
function kept(children) {
  return /** @type {(Node | string)[]} */ (
    children.flat().filter((child) => child != null && child !== false)
  );
}

/**
 * Returns an element that the document is known to have.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/**
 * @param {string} id
 * @returns {HTMLInputElement}
 */
export function input(id) {
  return /** @type {HTMLInputElement} */ (byId(id));
}

/** Says something to screen readers, which hear nothing below a dialog, and no text twice. */
export function say(/** @type {string} */ text) {
  const region = [...document.querySelectorAll("dialog[open] .said")].at(-1) ?? byId("said");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = text));
}
