// @ts-check
// Lists of the service, page by page. Filters, order and page are in the address.

import { el, replace, say } from "../base/dom.js";
import { count, countOrAbout } from "../base/format.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { showProblem } from "../base/problem.js";
import { load, onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { empty } from "./panel.js";
import { table } from "./table.js";

const TYPING_MS = 300;

/** @typedef {import("../base/dom.js").Child} Child */
/** @import { Entered } from "../../types" */
/** @typedef {Record<string, Entered>} Query */
/**
 * @template T
 * @typedef {object} Found
 * @property {T[]} items
 * @property {number} total
 * @property {boolean} total_is_exact
 * @property {number} limit
 * @property {number} offset
 */
/**
 * @template T
 * @typedef {object} Listing
 * @property {HTMLElement} host
 * @property {string} label
 * @property {import("./table.js").Column<T>[]} [columns] of a table
 * @property {(found: Found<T>) => Child[]} [drawn] shows the rows where a table does not
 * @property {(query: Query, signal: AbortSignal) => Promise<Found<T>>} ask `query` has the filters,
 *   and sort_by, sort_order, offset where they are not the defaults
 * @property {HTMLFormElement} [filters] its fields are named as the service names them
 * @property {{ by: string, order: "asc" | "desc" }} [sorted] the order at first
 * @property {{ title: string, text?: Child, actions?: Child[] }} [empty] shown while there is
 *   nothing at all
 * @property {import("./table.js").Selection<T>} [selection]
 * @property {boolean} [opens] whether a click in a row does what its first link or button does
 * @property {boolean} [isAside] one of several of a page, which does not own the address
 */

/**
 * Shows a list and keeps it up to date: when filters change, and when the tab is looked at again.
 * Returns what loads it again. `ask` stands before what shows the rows: that is how the compiler
 * learns what rows are, which are never anything otherwise.
 * @template [T=never]
 * @param {Listing<T>} listing
 * @returns {() => Promise<void>}
 */
export function list(listing) {
  const { host, filters, sorted, opens = false, isAside = false } = listing;
  const names = [
    ...new Set(
      [...(filters?.elements ?? [])]
        .map((one) => /** @type {HTMLInputElement} */ (one).name)
        .filter(Boolean),
    ),
  ];
  let running = new AbortController();
  let state = isAside ? {} : stateOf(names);

  let isNew = opens;
  /** @type {(how?: { isQuiet?: boolean }) => Promise<void>} */
  const show = async ({ isQuiet = false } = {}) => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    host.setAttribute("aria-busy", "true");
    if (!host.firstChild) replace(host, el("div", { class: "skeleton tall" }));
    try {
      const found = await load(() => orSignIn(listing.ask(state, signal)), { isQuiet: true });
      if (signal.aborted) return;
      if (found.items.length === 0 && found.total > 0)
        return await go({ offset: String(lastOffset(found)) }, "replace");
      draw(found);
      if (isNew) begin(host);
      isNew = false;
      if (!isQuiet) say(t("list.count", { count: found.total, total: totalOf(found) }));
    } catch (error) {
      if (!signal.aborted) showProblem(error, { isQuiet: true });
    } finally {
      if (!signal.aborted) host.removeAttribute("aria-busy");
    }
  };

  /** @type {(change: Record<string, string>, how: "push" | "replace") => Promise<void>} */
  const go = (change, how) => {
    state = without({ ...state, ...change });
    if (isAside) return show();
    const query = new URLSearchParams(state).toString();
    const url = window.location.pathname + (query && `?${query}`);
    if (how === "push") window.history.pushState(null, "", url);
    else window.history.replaceState(null, "", url);
    return show();
  };

  const draw = (/** @type {Found<T>} */ found) => {
    const isFiltered = names.some((name) => state[name]);
    if (found.total === 0)
      return replace(host, isFiltered ? noMatch(() => clear()) : nothing(listing));
    const sorting = sorted && {
      by: state.sort_by ?? sorted.by,
      order: /** @type {"asc" | "desc"} */ (state.sort_order ?? sorted.order),
      change: async (/** @type {string} */ by, /** @type {string} */ order) => {
        await go({ sort_by: by, sort_order: order, offset: "" }, "replace");
        /** @type {HTMLElement | null} */ (host.querySelector(`[data-sort="${by}"]`))?.focus();
      },
    };
    const { label, columns = [], selection, drawn } = listing;
    const turn = (/** @type {number} */ offset) =>
      go({ offset: String(offset) }, "push").then(() =>
        (host.querySelector("table") ?? host).scrollIntoView({ block: "nearest" }),
      );
    const rows = drawn
      ? drawn(found)
      : [table(label, columns, found.items, { sorting, selection })];
    replace(host, ...rows, pager(label, found, turn));
  };

  const clear = () => {
    filters?.reset();
    for (const name of names) if (filters) setField(filters, name, "");
    return go(Object.fromEntries([...names, "offset"].map((name) => [name, ""])), "replace");
  };

  if (filters) follow(filters, names, state, (change) => go({ ...change, offset: "" }, "replace"));
  window.addEventListener("popstate", () => {
    if (isAside || !host.isConnected) return;
    state = stateOf(names);
    for (const name of names) if (filters) setField(filters, name, state[name] ?? "");
    show();
  });
  document.addEventListener("visibilitychange", () => {
    const isUsed =
      host.contains(document.activeElement) ||
      document.querySelector("dialog") ||
      (listing.selection?.chosen.size ?? 0) > 0;
    if (!document.hidden && !isUsed && host.isConnected) show({ isQuiet: true });
  });
  show({ isQuiet: true });
  return () => show({ isQuiet: true });
}

/** @param {HTMLElement} host of a list whose rows open, and which is drawn for the first time */
function begin(host) {
  // Without it, the rows have their links.
  onDemand(() => import("./place.js")).then(
    ({ openRows }) => openRows(host),
    () => undefined,
  );
}

/** The button that loads a list again. */
export function reloadButton(/** @type {() => unknown} */ reload) {
  return el(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-label": t("list.reload"),
      title: t("list.reload"),
      click: reload,
    },
    icon("reload"),
  );
}

/**
 * @param {string[]} names
 * @returns {Query}
 */
function stateOf(names) {
  const given = new URLSearchParams(window.location.search);
  return without(
    Object.fromEntries(
      [...names, "sort_by", "sort_order", "offset"].map((name) => [name, given.get(name) ?? ""]),
    ),
  );
}

/**
 * @param {Record<string, string>} query
 * @returns {Query} without what is the default
 */
function without(query) {
  const given = Object.entries(query).filter(
    ([name, value]) => value !== "" && !(name === "offset" && value === "0"),
  );
  return Object.fromEntries(/** @type {[string, Entered][]} */ (given));
}

/** @param {Found<unknown>} found */
function lastOffset({ total, limit }) {
  return Math.floor((total - 1) / limit) * limit;
}

/** @param {Found<unknown>} found */
function totalOf({ total, total_is_exact: isExact }) {
  return countOrAbout(total, isExact);
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {string} value
 */
function setField(form, name, value) {
  const field = /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
  field.value = value;
}

/**
 * Fills in filters from the address, and follows what is typed and chosen.
 * @param {HTMLFormElement} form
 * @param {string[]} names
 * @param {Query} state
 * @param {(change: Record<string, string>) => unknown} changed
 */
function follow(form, names, state, changed) {
  for (const name of names) if (state[name]) setField(form, name, String(state[name]));
  let timer = 0;
  const tell = () => {
    window.clearTimeout(timer);
    const values = new FormData(form);
    changed(Object.fromEntries(names.map((name) => [name, String(values.get(name) ?? "").trim()])));
  };
  form.addEventListener("input", ({ target }) => {
    window.clearTimeout(timer);
    if (isUnfinished(/** @type {HTMLInputElement} */ (target))) return;
    const isTyped =
      target instanceof HTMLInputElement &&
      ["text", "search", "number", "date", "datetime-local"].includes(target.type);
    timer = window.setTimeout(tell, isTyped ? TYPING_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tell();
  });
}

/** Whether the year of a date is still being typed: it is 0002 after the first digit. */
function isUnfinished(/** @type {HTMLInputElement} */ { type, value }) {
  return type.startsWith("date") && value !== "" && value < "1000";
}

/** @param {() => unknown} clear */
function noMatch(clear) {
  return empty(
    t("list.no_match"),
    null,
    el("button", { type: "button", class: "secondary small", click: clear }, t("list.clear")),
  );
}

/** @param {{ empty?: { title: string, text?: Child, actions?: Child[] } }} listing */
function nothing({ empty: own }) {
  return empty(own?.title ?? t("list.empty"), own?.text, ...(own?.actions ?? []));
}

/**
 * @param {string} label
 * @param {Found<unknown>} found
 * @param {(offset: number) => unknown} turn
 */
function pager(label, found, turn) {
  const { items, total, limit, offset } = found;
  const range = t("list.range", {
    from: count(offset + 1),
    to: count(offset + items.length),
    total: totalOf(found),
  });
  const step = (
    /** @type {"back" | "next"} */ mark,
    /** @type {string} */ label,
    /** @type {number} */ to,
  ) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": label,
        disabled: to < 0 || to >= total,
        click: () => turn(to),
      },
      icon(mark),
    );
  return el(
    "nav",
    { class: "pager", "aria-label": `${label}: ${t("list.pages")}` },
    el("span", {}, range),
    total > limit &&
      step("back", t("list.previous"), offset === 0 ? -1 : Math.max(0, offset - limit)),
    total > limit && step("next", t("list.next"), offset + limit),
  );
}
