// @ts-check
// What stands around every page of a signed-in account: who it is, navigation, sign-out.

import { byId, el, replace } from "../base/dom.js";
import { useZone } from "../base/format.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { keep, kept } from "../base/kept.js";
import { start } from "../base/page.js";
import { showProblem } from "../base/problem.js";
import { load, onDemand } from "../base/retry.js";
import { signedIn, signOut } from "../base/session.js";
import { avatar } from "./avatar.js";

/** @typedef {import("../base/session.js").Me} Me */

/**
 * Prepares the page and runs it for who is signed in; below /admin only for administrators.
 * @param {(me: Me) => void | Promise<void>} run
 */
export function open(run) {
  start(async () => {
    offerMenus();
    offerWayBack();
    offerKeys();
    const me = await load(signedIn);
    if (await looksOtherwise(me)) return window.location.reload();
    useZone(me.preferences?.display_time_zone);
    showWho(me);
    if (new URLSearchParams(window.location.search).has("external_auth"))
      (await onDemand(() => import("./returned.js"))).showReturn();
    if (byId("main").dataset.section === "admin" && me.role !== "admin") return refuse();
    try {
      await run(me);
    } finally {
      // A list that fills all of it is still on its way.
      if (!document.querySelector("#content > .skeleton"))
        byId("content").removeAttribute("aria-busy");
    }
  });
}

/**
 * From a provider, people arrive here without the sign-in page, which takes over what their account
 * prefers.
 * @param {Me} me
 */
async function looksOtherwise(me) {
  if (!kept("sessionStorage", "arriving")) return false;
  keep("sessionStorage", "arriving", "");
  return onDemand(() => import("../base/preferences.js"))
    .then(({ adoptPreferences }) => adoptPreferences(me))
    .catch(() => false);
}

/**
 * Shows whose page it is; called again when name or picture have changed.
 * @param {Me} me
 */
export function showWho(me) {
  const name = me.profile?.display_name || me.username;
  replace(byId("me"), avatar(name, me.profile?.avatar.url_512), el("span", {}, name));
  replace(byId("who"), el("strong", {}, name), el("span", {}, me.email));
  const admin = document.getElementById("to-admin");
  if (admin) admin.hidden = me.role !== "admin";
}

/** Makes navigation and sign-out work. */
export function offerMenus() {
  const button = byId("sign-out");
  button.addEventListener("click", () => act(button, t("sign_out.busy"), signOut));
  const toggle = byId("nav-toggle");
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-expanded", String(toggle.getAttribute("aria-expanded") !== "true"));
  });
  const menu = /** @type {HTMLDetailsElement} */ (byId("account-menu"));
  document.addEventListener("click", ({ target }) => {
    if (!menu.contains(/** @type {Node} */ (target))) menu.open = false;
  });
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
}

/** What keys open comes with the first use; none is taken while a dialog is open. */
function offerKeys() {
  const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);
  const isOver = () => document.querySelector("dialog[open]") !== null;
  const list = () =>
    onDemand(() => import("./shortcuts.js")).then(
      ({ openShortcuts }) => isOver() || openShortcuts(isApple),
      showProblem,
    );
  const goTo = () =>
    onDemand(() => import("./go_to.js")).then(
      ({ openGoTo }) => isOver() || openGoTo(),
      showProblem,
    );
  byId("keys").addEventListener("click", () => {
    const menu = /** @type {HTMLDetailsElement} */ (byId("account-menu"));
    menu.open = false;
    menu.querySelector("summary")?.focus(); // where the focus returns to
    list();
  });
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    if (event.defaultPrevented || isOver()) return;
    const isHeld = ctrlKey || metaKey;
    const isTyped = /** @type {Element} */ (target).matches(
      "input:not([type=checkbox], [type=radio]), select, textarea",
    );
    const isSingle = !isHeld && !altKey && !isTyped && kept("localStorage", "keys") !== "off";
    const search = [...document.querySelectorAll("#main input[type=search]")].find((one) =>
      one.checkVisibility(),
    );
    const isCommand = isApple ? metaKey : ctrlKey; // Ctrl+K deletes to the end of a line there
    if (isCommand && !altKey && key.toLowerCase() === "k") goTo();
    else if (isSingle && key === "?") list();
    else if (isSingle && key === "/" && search) /** @type {HTMLElement} */ (search).focus();
    else return;
    event.preventDefault();
  });
}

/** The link above the title leads to the list; as it was left, if that is known. */
function offerWayBack() {
  const link = document.getElementById("back");
  if (!link) return;
  onDemand(() => import("./place.js")).then(
    ({ offerWayBack: offer }) => offer(/** @type {HTMLAnchorElement} */ (link)),
    () => undefined,
  );
}

/** The page guards nothing: the API refuses, and this says so before it has to. */
function refuse() {
  byId("page-actions").remove();
  for (const id of ["nav", "nav-toggle"]) byId(id).remove(); // all of it leads here
  const home = el("a", { class: "button primary", href: "/settings/profile" }, t("missing.home"));
  const main = byId("main");
  const box = el(
    "div",
    { class: "note warn", role: "alert" },
    el("p", {}, t("error.auth.admin_required")),
  );
  main.replaceChildren(
    /** @type {Node} */ (main.querySelector(".page-head")),
    box,
    el("p", {}, home),
  );
}
