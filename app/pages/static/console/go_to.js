// @ts-check
// A dialog that leads to any page; administrators also find accounts and teams by it.

import { call } from "../base/api.js";
import { openDialog } from "../base/dialog.js";
import { byId, el, replace, say } from "../base/dom.js";
import { textInput } from "../base/form.js";
import { folded } from "../base/format.js";
import { t, textKeys } from "../base/i18n.js";
import { icon } from "../base/icons.js";

/** @import { Icon } from "../base/icons.js" */
/** @typedef {{ text: string, more: string, href: string, mark: Icon }} Place */

/** The navigation of one's account, for pages with another one. @type {[string, Icon][]} */
const ACCOUNT = [
  ["profile", "person"],
  ["security", "shield"],
  ["sessions", "devices"],
  ["tokens", "key"],
  ["connections", "link"],
  ["teams", "team"],
  ["preferences", "sliders"],
  ["activity", "clock"],
  ["data", "box"],
];
const TYPING_MS = 200;
const MOST_FOUND = 5;

/** Opens it, the focus in its field. */
export function openGoTo() {
  const isAdmin = byId("main").dataset.section === "admin";
  const known = [...pages(), ...categories()];
  /** @type {Place[]} */
  let shown = [];
  let chosen = 0;
  let timer = 0;
  let running = new AbortController();
  const list = el("ul", { id: "places", role: "listbox", "aria-label": t("go.places") });
  const none = el("p", { class: "hint", hidden: true }, t("list.no_match"));
  const input = textInput("place", {
    type: "search",
    role: "combobox",
    maxlength: 255,
    placeholder: t(isAdmin ? "go.hint_admin" : "go.hint"),
    "aria-label": t("go.title"),
    "aria-autocomplete": "list",
    "aria-controls": list.id,
  });

  const choose = (/** @type {number} */ index) => {
    const options = [...list.children];
    chosen = options.length ? (index + options.length) % options.length : 0;
    options.forEach((one, at) => one.setAttribute("aria-selected", String(at === chosen)));
    const option = options[chosen];
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  };
  const show = (/** @type {Place[]} */ places, at = 0) => {
    shown = places;
    replace(list, ...places.map((place, index) => option(place, index, follow)));
    list.hidden = places.length === 0;
    none.hidden = places.length > 0;
    input.setAttribute("aria-expanded", String(places.length > 0));
    choose(at);
    say(t("list.count", { count: places.length, total: places.length }));
  };
  const follow = (/** @type {number} */ index) => {
    const place = shown[index];
    if (!place) return;
    // A tab of the page that is open keeps what is not saved there.
    const tab = [...document.querySelectorAll(".tabs a")].find(
      (one) => one.getAttribute("href") === place.href,
    );
    if (!(tab instanceof HTMLAnchorElement)) return window.location.assign(place.href);
    close();
    tab.click();
  };
  const search = () => {
    window.clearTimeout(timer);
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const typed = input.value.trim();
    const here = known.filter((place) => matches(place, typed));
    show(here);
    if (!isAdmin || !typed) return;
    timer = window.setTimeout(async () => {
      const found = await people(typed, signal).catch(() => []);
      if (!signal.aborted && found.length > 0) show([...here, ...found], chosen);
    }, TYPING_MS);
  };

  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose(chosen + step);
    else if (event.key === "Enter" && !event.isComposing) follow(chosen);
    else return;
    event.preventDefault();
  });
  const content = el("div", { class: "go-to" }, input, list, none);
  const close = openDialog(t("go.title"), [content], {
    focus: input,
    closed: () => running.abort(),
  });
  search();
}

/**
 * @param {Place} place
 * @param {number} index
 * @param {(index: number) => void} follow
 */
function option({ text, more, mark }, index, follow) {
  return el(
    "li",
    {
      id: `place-${index}`,
      role: "option",
      // The field keeps the focus.
      mousedown: (/** @type {Event} */ event) => event.preventDefault(),
      click: () => follow(index),
    },
    icon(mark),
    el("span", {}, text),
    el("span", { class: "hint" }, more),
  );
}

/**
 * The pages of the navigation and of the menu, and those of one's account, if the menu has it.
 * @returns {Place[]}
 */
function pages() {
  const links = ["#nav > a", "#account-menu li:not([hidden]) > a"].flatMap((one) => [
    .../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(one)),
  ]);
  const own = links.map(({ textContent, pathname, dataset }) => ({
    text: textContent.trim(),
    more: "",
    href: pathname,
    mark: /** @type {Icon} */ (dataset.icon),
  }));
  const isHere = byId("main").dataset.section === "account";
  const account = own.some(({ href }) => href === "/settings/profile") && !isHere ? ACCOUNT : [];
  const others = account.map(([name, mark]) => ({
    text: t(`${name}.title`),
    more: t("nav.account"),
    href: `/settings/${name}`,
    mark,
  }));
  // The menu leads to some of them, too.
  const all = [...own.filter(({ href }) => !others.some((one) => one.href === href)), ...others];
  return all.filter(({ href }, index) => all.findIndex((one) => one.href === href) === index);
}

/**
 * The categories of the settings, which only administrators have texts of.
 * @returns {Place[]}
 */
function categories() {
  return textKeys("category.").map((key) => ({
    text: t(key),
    more: t("settings.title"),
    href: `/admin/settings/${key.slice("category.".length)}`,
    mark: "sliders",
  }));
}

/**
 * @param {Place} place
 * @param {string} typed
 */
function matches({ text, more }, typed) {
  return folded(`${text} ${more}`).includes(folded(typed));
}

/**
 * Accounts and teams by name.
 * @param {string} keyword
 * @param {AbortSignal} signal
 * @returns {Promise<Place[]>}
 */
async function people(keyword, signal) {
  const query = { keyword, limit: MOST_FOUND, sort_order: /** @type {const} */ ("asc") };
  const [users, teams] = await Promise.all([
    call("get", "/admin/users", { query: { ...query, sort_by: "username" }, signal }),
    call("get", "/admin/teams", { query: { ...query, sort_by: "name" }, signal }),
  ]);
  return [
    ...users.items.map(({ id, username, email }) => ({
      text: username,
      more: email,
      href: `/admin/users/${id}`,
      mark: /** @type {const} */ ("person"),
    })),
    ...teams.items.map(({ id, name }) => ({
      text: name,
      more: t("team.title"),
      href: `/admin/teams/${id}`,
      mark: /** @type {const} */ ("team"),
    })),
  ];
}
