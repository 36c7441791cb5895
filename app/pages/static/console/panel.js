// @ts-check
// The parts that pages are made of.

import { breakable, el } from "../base/dom.js";

/** @typedef {import("../base/dom.js").Child} Child */

/**
 * A section with a heading.
 * @param {string} id
 * @param {string} title
 * @param {{ lead?: Child, actions?: Child[] }} head
 * @param {...(Child | Child[])} content
 */
export function panel(id, title, { lead, actions = [] }, ...content) {
  const heading = el("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  return breakable(
    el(
      "section",
      { class: "card panel", id, "aria-labelledby": heading.id },
      el(
        "div",
        { class: "panel-head" },
        el("div", {}, heading, lead && el("p", { class: "lead" }, lead)),
        el("div", { class: "panel-actions" }, ...actions),
      ),
      ...content,
    ),
  );
}

/**
 * Names and what they are of something; those without a value are left out.
 * @param {[name: string, value: Child][]} pairs
 */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== "" && value != null && value !== false);
  return el(
    "dl",
    { class: "facts" },
    ...known.flatMap(([name, value]) => [el("dt", {}, name), breakable(el("dd", {}, value))]),
  );
}

/**
 * A word about a state; the colour only repeats it.
 * @param {string} text
 * @param {"good" | "warn" | "bad" | "plain"} [kind]
 */
export function badge(text, kind = "plain") {
  return el("span", { class: `badge ${kind}` }, text);
}

/**
 * What stands where there is nothing.
 * @param {string} title
 * @param {Child} [text]
 * @param {...Child} actions
 */
export function empty(title, text, ...actions) {
  return el(
    "div",
    { class: "empty" },
    el("p", { class: "empty-title" }, title),
    text && el("p", {}, text),
    actions.length > 0 && el("p", { class: "actions" }, ...actions),
  );
}
