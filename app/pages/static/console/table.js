// @ts-check
// Tables, which are cards on narrow screens.

import { breakable, el } from "../base/dom.js";
import { t } from "../base/i18n.js";

/** Tables of so many columns need more room, or become cards earlier. */
const [MIDDLE, WIDE] = [4, 5];

/** @typedef {import("../base/dom.js").Child} Child */
/**
 * @template T
 * @typedef {object} Column
 * @property {string} label
 * @property {(row: T) => Child | Child[]} cell
 * @property {string} [sort] the name by which the service sorts
 * @property {"number" | "actions"} [kind]
 */
/** @typedef {"asc" | "desc"} Order */
/** @typedef {{ by: string, order: Order, change: (by: string, order: Order) => void }} Sorting */
/**
 * @template T
 * @typedef {object} Selection
 * @property {(row: T) => number} idOf
 * @property {(row: T) => string} nameOf
 * @property {Set<number>} chosen
 * @property {() => void} changed
 */

/**
 * The first column names its row.
 * @template T
 * @param {string} label of the table, for screen readers
 * @param {Column<T>[]} columns
 * @param {T[]} rows
 * @param {{ sorting?: Sorting, selection?: Selection<T> }} [how]
 */
export function table(label, columns, rows, { sorting, selection } = {}) {
  const head = columns.map((column) => headOf(column, sorting));
  const all = selection && el("input", { type: "checkbox", "aria-label": t("list.select_all") });
  const lines = rows.map((row) => {
    const cells = columns.map((column, index) => cellOf(column, row, index === 0));
    return el("tr", {}, selection && selectCell(row, selection), ...cells);
  });
  all?.addEventListener("change", () =>
    selectAll(rows, all.checked, /** @type {Selection<T>} */ (selection), lines),
  );
  const width = columns.length >= WIDE ? "wide" : columns.length >= MIDDLE ? "middle" : "";
  return el(
    "div",
    { class: `table-wrap ${width}` },
    el(
      "table",
      {},
      el("caption", { class: "visually-hidden" }, label),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          all && el("th", { class: "select", "data-label": t("list.select_all") }, all),
          ...head,
        ),
      ),
      el("tbody", {}, ...lines),
    ),
  );
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {Sorting} [sorting]
 */
function headOf({ label, sort, kind }, sorting) {
  if (!sort || !sorting)
    return el(
      "th",
      { scope: "col", class: kind },
      kind === "actions" ? el("span", { class: "visually-hidden" }, label) : label,
    );
  const isBy = sorting.by === sort;
  const order = isBy && sorting.order === "asc" ? "desc" : "asc";
  const button = el(
    "button",
    { type: "button", "data-sort": sort, click: () => sorting.change(sort, order) },
    label,
  );
  const words = { asc: "ascending", desc: "descending" };
  return el(
    "th",
    { scope: "col", class: kind, "aria-sort": isBy ? words[sorting.order] : "none" },
    button,
  );
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {T} row
 * @param {boolean} isFirst
 */
function cellOf({ label, cell, kind }, row, isFirst) {
  const parts = [cell(row)].flat();
  const content = parts.length > 1 ? [el("div", {}, parts)] : parts;
  if (isFirst) return breakable(el("th", { scope: "row", class: kind }, ...content));
  return breakable(
    el("td", { "data-label": kind === "actions" ? null : label, class: kind }, ...content),
  );
}

/**
 * @template T
 * @param {T} row
 * @param {Selection<T>} selection
 */
function selectCell(row, { idOf, nameOf, chosen, changed }) {
  const id = idOf(row);
  const box = el("input", {
    type: "checkbox",
    checked: chosen.has(id),
    "aria-label": t("list.select", { name: nameOf(row) }),
  });
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(id);
    else chosen.delete(id);
    changed();
  });
  return el("td", { class: "select" }, box);
}

/**
 * @template T
 * @param {T[]} rows
 * @param {boolean} isChosen
 * @param {Selection<T>} selection
 * @param {HTMLElement[]} lines
 */
function selectAll(rows, isChosen, { idOf, chosen, changed }, lines) {
  for (const line of lines)
    /** @type {HTMLInputElement} */ (line.querySelector(".select input")).checked = isChosen;
  for (const row of rows) isChosen ? chosen.add(idOf(row)) : chosen.delete(idOf(row));
  changed();
}
