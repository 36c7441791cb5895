// @ts-check
// Puts another step in place of the form.

import { byId, el, replace } from "../base/dom.js";
import { icon } from "../base/icons.js";
import { setTitle } from "../base/page.js";
import { clearProblem } from "../base/problem.js";

/** What belongs to the form that was there first. */
const OF_THE_FORM = ["aside", "notes", "emblem"];

/**
 * Shows a step under a heading, which gets the focus unless `focus` is given.
 * @param {string} title
 * @param {(Node | string)[]} content
 * @param {{ focus?: HTMLElement, emblem?: Parameters<typeof icon>[0] }} [how]
 */
export function show(title, content, { focus, emblem } = {}) {
  clearProblem();
  setTitle(title);
  byId("title").textContent = title;
  for (const id of OF_THE_FORM) document.getElementById(id)?.remove();
  if (emblem) byId("title").before(el("div", { class: "emblem", id: "emblem" }, icon(emblem)));
  replace(byId("stage"), ...content);
  (focus ?? byId("title")).focus();
}

/**
 * Remembers the step that is shown; returns what shows it again, as it was left.
 * @param {HTMLElement} focus where to go on in it
 */
export function wayBack(focus) {
  const heading = String(byId("title").textContent);
  const { title } = document;
  const content = [...byId("stage").childNodes];
  const aside = document.getElementById("aside");
  return () => {
    show(heading, /** @type {Element[]} */ (content), { focus });
    document.title = title;
    if (aside) byId("main").append(aside);
  };
}

/**
 * Radio buttons that look like tabs; the first is chosen.
 * @template {string} T
 * @param {string} legend what is chosen, for those who cannot see it
 * @param {[T, string][]} options each with its label
 * @param {(chosen: T) => void} choose
 */
export function tabs(legend, options, choose) {
  const labels = options.map(([value, label], index) => {
    const radio = el("input", {
      type: "radio",
      name: "choice",
      value,
      checked: index === 0,
      change: () => choose(value),
    });
    return el("label", {}, radio, el("span", {}, label));
  });
  return el(
    "fieldset",
    { class: "tabs segments" },
    el("legend", { class: "visually-hidden" }, legend),
    ...labels,
  );
}
