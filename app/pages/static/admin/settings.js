// @ts-check
// Settings by category. What is changed is a draft until all of it is saved at once.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { act, field, mark, textInput } from "../base/form.js";
import { asSaid, t, translated } from "../base/i18n.js";
import { setTitle } from "../base/page.js";
import { showNotice, showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { button } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { meaningOf, settingRow } from "./setting_row.js";
import { readAll } from "./stored_settings.js";

/** @import { Body } from "../../types" */
/** @import { Setting } from "./stored_settings.js" */
/** @typedef {string | string[]} Value null returns to the default */

const NEVER = "1970-01-01T00:00:00";
/** Texts of mails are changed on a page of their own. */
const ELSEWHERE = "mail.template";
/** The look of these pages. */
const LOOK = "pages";

/** @type {Setting[]} */
let settings = [];
/** What is not saved yet; null returns to the default. @type {Map<string, Value | null>} */
const drafts = new Map();
const host = el("div", { class: "settings card" });
const words = el("span", { "aria-live": "polite" });
const bar = el("div", { class: "save-bar card", hidden: true });
let keyword = "";

open(async () => {
  settings = await load(() => orSignIn(readAll()));
  const search = textInput("keyword", { type: "search", id: "settings-search" });
  search.addEventListener("input", () => {
    keyword = folded(search.value.trim());
    show();
  });
  const save = el("button", { type: "button", class: "primary" }, t("save"));
  const discard = button(t("settings.discard"), { click: discardAll });
  save.addEventListener("click", () => act(save, t("saving"), saveAll));
  bar.append(words, discard, save);
  replace(byId("content"), field(t("settings.search"), search), tabs(), host, bar);
  show();
  window.addEventListener("beforeunload", (event) => drafts.size > 0 && event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return;
    event.preventDefault();
    if (drafts.size > 0) save.click();
  });
});

/**
 * The same for every letter case, as in the lists that the service searches.
 * @param {string} text
 */
function folded(text) {
  return text.normalize("NFC").toUpperCase();
}

function categories() {
  return [...new Set(settings.map((one) => one.category))].filter((one) => one !== ELSEWHERE);
}

function chosenCategory() {
  const name = decodeURIComponent(window.location.pathname.split("/")[3] ?? "");
  return categories().includes(name)
    ? name
    : (categories().find((one) => one === "site") ?? categories()[0] ?? "");
}

function tabs() {
  const links = categories().map((name) => {
    const isHere = name === chosenCategory();
    const link = el(
      "a",
      { href: `/admin/settings/${name}`, "aria-current": isHere && "page" },
      t(`category.${name}`),
    );
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      // Drafts would be lost by loading another page.
      event.preventDefault();
      window.history.pushState(null, "", link.href);
      searchFor("");
      show();
    });
    return link;
  });
  window.addEventListener("popstate", show);
  return el(
    "nav",
    { class: "tabs", "aria-label": t("settings.categories") },
    ...links,
    el("a", { href: "/admin/mail" }, t("settings.templates")),
  );
}

function show() {
  const category = chosenCategory();
  for (const link of document.querySelectorAll(".tabs a")) {
    const isHere =
      !keyword &&
      /** @type {HTMLAnchorElement} */ (link).pathname === `/admin/settings/${category}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  setTitle(`${t(`category.${category}`)} · ${t("settings.title")}`);
  const isWanted = (/** @type {Setting} */ one) =>
    keyword
      ? one.category !== ELSEWHERE &&
        folded(`${one.key} ${one.description} ${translated(meaningOf(one)) ?? ""}`).includes(
          keyword,
        )
      : one.category === category;
  const wanted = settings.filter(isWanted);
  const found = wanted.sort((one, other) => other.precedence - one.precedence);
  replace(
    host,
    ...(found.length > 0
      ? found.map((one) => settingRow(one, drafts.get(one.key), change))
      : [empty(t("list.no_match"))]),
  );
  tell();
}

/**
 * @param {Setting} setting
 * @param {Value | null} value
 */
function change(setting, value) {
  const isSame =
    value !== null &&
    !setting.is_sensitive &&
    JSON.stringify(value) === JSON.stringify(setting.value);
  const isNothing = (setting.is_sensitive && value === "") || (value === null && !setting.is_set);
  if (isSame || isNothing) drafts.delete(setting.key);
  else drafts.set(setting.key, value);
  tell();
  return drafts.has(setting.key);
}

function tell() {
  bar.hidden = drafts.size === 0;
  words.textContent = t("settings.drafts", { count: drafts.size });
}

/** @param {string} text */
function searchFor(text) {
  keyword = folded(text);
  /** @type {HTMLInputElement} */ (byId("settings-search")).value = text;
}

function discardAll() {
  drafts.clear();
  show();
  byId("title").focus();
}

async function saveAll() {
  const sent = [...drafts];
  /** @type {Record<string, Value>} */
  const values = {};
  for (const [key, value] of sent) if (value !== null) values[key] = value;
  const unset = sent.filter(([, value]) => value === null).map(([key]) => key);
  const draft = { values, unset };
  const { problems } = await orSignIn(call("post", "/admin/config/validate", { body: draft }));
  if (problems.length > 0) {
    settings = await orSignIn(readAll()); // what somebody else has changed meanwhile may be why
    show();
    return showProblems(problems);
  }
  const keys = sent.map(([key]) => key);
  const body = { ...draft, expected_updated_at: lastChange(keys) };
  const done = await asOwner(t("settings.why"), () => orSignIn(patched(body)));
  if (!done) return;
  for (const [key, value] of sent) if (drafts.get(key) === value) drafts.delete(key);
  settings = await orSignIn(readAll());
  show();
  toast(t(haveShown(keys) ? "settings.saved_look" : "saved"));
  byId("title").focus();
  if (done.also_changed.length > 0)
    showNotice(t("settings.also_changed", { names: done.also_changed.join(", ") }), {
      kind: "warn",
    });
}

/**
 * Whether pages have shown what one of these settings was before.
 * @param {string[]} keys
 */
function haveShown(keys) {
  return settings.some(
    ({ key, category, invalidates }) =>
      keys.includes(key) && (category === LOOK || invalidates.includes("frontend_config")),
  );
}

/**
 * When one of these settings was last changed, as far as this page knows.
 * @param {string[]} keys
 */
function lastChange(keys) {
  // Without the Z, since a fraction of a second comes before it; a Date would cut that short.
  const times = settings.flatMap(({ key, updated_at: at }) =>
    at && keys.includes(key) ? [at.slice(0, -1)] : [],
  );
  return `${times.sort().at(-1) ?? NEVER}Z`;
}

/**
 * Saves; what would lock the administrator out is saved only after a second question, and nothing
 * if somebody else has changed the same: null.
 * @param {Required<Body<"patch", "/admin/config">>} body
 */
async function patched(body) {
  try {
    return await call("patch", "/admin/config", { body });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "conflict") throw error;
    settings = await readAll();
    if (lastChange([...Object.keys(body.values), ...body.unset]) !== body.expected_updated_at) {
      show();
      showNotice(t("meanwhile.kept"), { kind: "warn" });
      return null;
    }
    const isForced = await confirmed({
      title: t("settings.locks_out"),
      text: el("p", {}, asSaid(error.msg)),
      verb: t("settings.save_anyway"),
    });
    if (!isForced) throw error;
    return call("patch", "/admin/config", { body, query: { force: true } });
  }
}

/**
 * Marks what is wrong.
 * @param {{ key: string, problem: string }[]} problems
 */
function showProblems(problems) {
  const [first] = problems;
  if (!first) return;
  const category = settings.find((one) => one.key === first.key)?.category;
  if (!document.getElementById(first.key) && category) {
    window.history.pushState(null, "", `/admin/settings/${category}`);
    searchFor("");
    show();
  }
  for (const { key, problem } of problems) {
    const control = /** @type {HTMLInputElement | null} */ (document.getElementById(key));
    const text = translated(problem);
    if (control) mark(control, text ?? t("error.bad_request"), text ? "" : problem);
  }
  document.getElementById(first.key)?.focus();
  if (!document.getElementById(first.key))
    showProblem(
      new Refusal({
        status: 400,
        code: "bad_request",
        msg: `${first.key}: ${first.problem}`,
        isChange: true,
      }),
    );
}
