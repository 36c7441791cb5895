// @ts-check
// Settings by category, or those that a search finds. What is changed is a draft until all of it is
// saved at once.

import { Refusal } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { act, field, mark, textInput } from "../base/form.js";
import { folded } from "../base/format.js";
import { t } from "../base/i18n.js";
import { setTitle } from "../base/page.js";
import { showNotice, showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { askBeforeLeaving } from "../base/session.js";
import { button } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { change, drafts, haveShown, read, save, settings } from "./setting_drafts.js";
import { tabNamed, tabs } from "./setting_places.js";
import { settingRow } from "./setting_row.js";
import { helpOf, labelOf, problemWords } from "./setting_words.js";

/** @import { Problem } from "./setting_drafts.js" */
/** @import { Setting } from "./stored_settings.js" */

const host = el("div", { class: "setting-groups" });
const found = el("p", { class: "hint", role: "status" });
const words = el("span", { "aria-live": "polite" });
const bar = el("div", { class: "save-bar card", hidden: true });
const search = textInput("keyword", { type: "search", id: "settings-search" });

open(async () => {
  await load(read);
  search.value = askedFor();
  search.addEventListener("input", () => {
    const query = search.value.trim() && `?${new URLSearchParams({ q: search.value.trim() })}`;
    window.history.replaceState(null, "", `${window.location.pathname}${query}`);
    show();
  });
  const saving = el("button", { type: "button", class: "primary" }, t("save"));
  const discard = button(t("settings.discard"), { click: discardAll });
  saving.addEventListener("click", () => act(saving, t("saving"), saveAll));
  bar.append(words, discard, saving);
  replace(byId("content"), field(t("settings.search"), search), navigation(), found, host, bar);
  show();
  window.addEventListener("popstate", () => {
    search.value = askedFor();
    show();
  });
  askBeforeLeaving(() => drafts.size > 0);
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return;
    event.preventDefault();
    if (drafts.size > 0) saving.click();
  });
});

/** What the address searches for. */
function askedFor() {
  return new URLSearchParams(window.location.search).get("q") ?? "";
}

function chosenTab() {
  const name = decodeURIComponent(window.location.pathname.split("/")[3] ?? "");
  return tabNamed(name, settings);
}

function navigation() {
  const links = tabs.map((name) => tabLink(name, t(`category.${name}`)));
  return el(
    "nav",
    { class: "tabs", "aria-label": t("settings.categories") },
    ...links,
    el("a", { href: "/admin/mail" }, t("settings.templates")),
  );
}

/**
 * @param {string} name
 * @param {string} text
 */
function tabLink(name, text) {
  const link = el("a", { href: `/admin/settings/${name}` }, text);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    // Drafts would be lost by loading another page.
    event.preventDefault();
    goTo(name);
  });
  return link;
}

/** @param {string} tab */
function goTo(tab) {
  window.history.pushState(null, "", `/admin/settings/${tab}`);
  search.value = "";
  show();
}

function show() {
  const keyword = search.value.trim();
  const tab = chosenTab();
  for (const link of document.querySelectorAll(".tabs a")) {
    const { pathname } = /** @type {HTMLAnchorElement} */ (link);
    if (!keyword && pathname === `/admin/settings/${tab}`)
      link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  setTitle(keyword ? t("settings.title") : `${t(`category.${tab}`)} · ${t("settings.title")}`);
  const wanted = settings.filter((one) => (keyword ? isFound(one, keyword) : one.tab === tab));
  found.textContent = keyword && t("settings.found", { count: wanted.length });
  found.hidden = !keyword || wanted.length === 0;
  const groups = tabs.map((name) => wanted.filter((one) => one.tab === name));
  replace(
    host,
    ...(wanted.length > 0
      ? groups.filter((group) => group.length > 0).map((group) => groupOf(group, keyword !== ""))
      : [nothing(keyword)]),
  );
  tell();
}

/**
 * @param {Setting[]} group of one tab
 * @param {boolean} isNamed
 */
function groupOf(group, isNamed) {
  const tab = group[0]?.tab ?? "";
  return el(
    "div",
    { class: "setting-group" },
    isNamed && el("h2", {}, tabLink(tab, t(`category.${tab}`))),
    el("div", { class: "card settings" }, ...group.map(rowOf)),
  );
}

/** @param {Setting} setting */
function rowOf(setting) {
  return settingRow(setting, drafts.get(setting.key), (one, value) => {
    const isDraft = change(one, value);
    tell();
    return isDraft;
  });
}

/** @param {string} keyword */
function nothing(keyword) {
  const clear = button(t("settings.clear"), {
    click: () => {
      search.value = "";
      search.dispatchEvent(new Event("input"));
      search.focus();
    },
  });
  return el(
    "div",
    { class: "card" },
    empty(t("list.no_match"), t("settings.none_found", { text: keyword }), clear),
  );
}

/**
 * Whether all words of a search are in what is shown of a setting.
 * @param {Setting} setting
 * @param {string} keyword
 */
function isFound(setting, keyword) {
  const { key, tab } = setting;
  const text = folded(`${t(`category.${tab}`)} ${labelOf(setting)} ${helpOf(setting)} ${key}`);
  return folded(keyword)
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function tell() {
  bar.hidden = drafts.size === 0;
  words.textContent = t("settings.drafts", { count: drafts.size });
}

function discardAll() {
  drafts.clear();
  show();
  byId("title").focus();
}

async function saveAll() {
  const done = await save(show);
  if (!done) return;
  if (done.problems.length > 0) return showProblems(done.problems);
  toast(t(haveShown(done.keys) ? "settings.saved_look" : "saved"));
  byId("title").focus();
  if (done.others.length > 0) {
    const names = done.others.map((key) => labelOf({ key })).join(", ");
    showNotice(t("settings.also_changed", { names }), { kind: "warn" });
  }
}

/**
 * Marks what is wrong.
 * @param {Problem[]} problems
 */
function showProblems(problems) {
  const [first] = problems;
  if (!first) return;
  const tab = settings.find((one) => one.key === first.key)?.tab;
  if (!document.getElementById(first.key) && tab) goTo(tab);
  for (const { key, problem } of problems) {
    const control = /** @type {HTMLInputElement | null} */ (document.getElementById(key));
    const text = problemWords(problem, settings.find((one) => one.key === key)?.unit);
    if (control) mark(control, text ?? t("error.bad_request"), text ? "" : problem);
  }
  const control = document.getElementById(first.key);
  control?.focus();
  control?.closest(".setting")?.scrollIntoView({ block: "nearest" });
  if (!control)
    showProblem(
      new Refusal({
        status: 400,
        code: "bad_request",
        msg: `${first.key}: ${first.problem}`,
        isChange: true,
      }),
    );
}
