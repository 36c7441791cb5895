// @ts-check
// The end of the set-up: the storage route, and then what is worth doing first.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { act } from "../base/form.js";
import { rich, t } from "../base/i18n.js";
import { leaveFor, start } from "../base/page.js";
import { load } from "../base/retry.js";
import { signInPath } from "../base/return_path.js";
import { orSignIn, whoIsSignedIn } from "../base/session.js";
import { show } from "./stage.js";

/** What is worth doing first, each with the setting that its text names. */
const FIRST_STEPS = {
  address: "public_site_url",
  mail: "mail_smtp_host",
  invite: "",
  second_factor: "",
};

/** Where a step is done in the browser, if there are such pages. @type {Record<string, string>} */
const PLACES = {
  overview: "/admin/overview",
  address: "/admin/settings/site",
  mail: "/admin/settings/mail",
  invite: "/admin/users/invitations",
  second_factor: "/settings/security",
};
const SECTIONS = { "/admin": "admin", "/settings": "account" };

/** @param {string} text */
function code(text) {
  return el("code", {}, text);
}

function showLastStep() {
  const button = el("button", { type: "button", class: "primary" }, t("storage.submit"));
  const create = async () => {
    await orSignIn(call("post", "/admin/storage/bootstrap"));
    showFirstSteps();
  };
  button.addEventListener("click", () => act(button, t("storage.busy"), create));
  show(t("storage.title"), [el("p", { class: "lead" }, t("storage.lead")), button]);
}

function showOthersTurn() {
  const again = el(
    "button",
    { type: "button", class: "primary", click: () => window.location.reload() },
    t("storage.again"),
  );
  show(t("storage.title"), [el("p", { class: "lead" }, t("storage.others")), again]);
}

/** @param {string} step */
function placeOf(step) {
  const href = PLACES[step] ?? "";
  const sections = (document.documentElement.dataset.sections ?? "").split(" ");
  const isThere = Object.entries(SECTIONS).some(
    ([folder, section]) => href.startsWith(folder) && sections.includes(section),
  );
  return isThere ? href : "";
}

function showFirstSteps() {
  const origin = document.documentElement.dataset.origin || window.location.origin;
  const steps = Object.entries(FIRST_STEPS).map(([step, name]) => {
    const text = rich(`first.${step}.text`, { origin, name: code(name) });
    const title = t(`first.${step}.title`);
    const href = placeOf(step);
    return el(
      "li",
      {},
      el("h2", {}, href ? el("a", { href }, title) : title),
      el("p", { class: "hint" }, ...text),
    );
  });
  const go = el(
    "a",
    { class: "button primary", href: placeOf("overview") || "/" },
    t("login.continue"),
  );
  show(
    t("first.title"),
    [el("p", { class: "lead" }, t("first.lead")), el("ul", { class: "steps" }, ...steps), go],
    { emblem: "done" },
  );
}

start(async () => {
  const { setup_state } = await load(() => call("post", "/auth/check"));
  if (setup_state === "needs_admin") return leaveFor("/setup");
  const me = await load(whoIsSignedIn);
  if (!me) return leaveFor(signInPath());
  const isAdmin = me.role === "admin";
  if (setup_state === "ready") return isAdmin ? showFirstSteps() : leaveFor("/");
  return isAdmin ? showLastStep() : showOthersTurn();
});
