// Tables of what an account owns, with a button at each row.

import { el } from "../base/dom.js";

// `columns` are the visible headings; one more, for the buttons, is for screen readers alone.
export function ownTable(caption, columns, rows) {
  return el(
    "div",
    { class: "table-wrap" },
    el(
      "table",
      {},
      el("caption", { class: "visually-hidden" }, caption),
      el("thead", {}, el("tr", {}, columns.map(columnHead), el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Action")))),
      el("tbody", {}, rows),
    ),
  );
}

function columnHead(text) {
  return el("th", { scope: "col" }, text);
}

export function rowButton(text, label, click) {
  return el("td", {}, el("button", { type: "button", class: "small", "aria-label": label, click }, text));
}

export function shortTime(moment) {
  return new Date(moment).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
}
