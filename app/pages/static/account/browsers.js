// @ts-check
// Browsers in which signing in needs no second step.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { ago, day, moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { browserWords } from "../console/agents.js";
import { actButton } from "../console/fields.js";
import { badge, empty, panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/mfa/devices">[number]} Browser */

export function list() {
  return call("get", "/auth/mfa/devices");
}

/**
 * @param {Browser[]} browsers
 * @param {HTMLElement} twoStep whose changes end the trust
 */
export function section(browsers, twoStep) {
  const host = el("div");
  show(host, browsers);
  twoStep.addEventListener("changed", () => orSignIn(list()).then((now) => show(host, now)));
  return host;
}

/**
 * @param {HTMLElement} host
 * @param {Browser[]} browsers
 */
function show(host, browsers) {
  const all = actButton(t("browsers.stop_all"), { class: "danger-line" }, () => stopAll(host));
  const at = (/** @type {string} */ time, /** @type {(iso: string) => string} */ words) =>
    el("time", { datetime: time, title: moment(time) }, words(time));
  const columns = [
    { label: t("browsers.browser"), cell: browserCell },
    { label: t("browsers.used"), cell: (/** @type {Browser} */ one) => at(one.last_used_at, ago) },
    { label: t("browsers.until"), cell: (/** @type {Browser} */ one) => at(one.expires_at, day) },
    {
      label: t("browsers.stop"),
      kind: /** @type {const} */ ("actions"),
      cell: (/** @type {Browser} */ one) => stopButton(host, one),
    },
  ];
  replace(
    host,
    panel(
      "browsers",
      t("browsers.title"),
      { lead: t("browsers.lead"), actions: [browsers.length > 1 && all] },
      browsers.length > 0
        ? table(t("browsers.title"), columns, browsers)
        : empty(t("browsers.empty"), t("browsers.empty_text")),
    ),
  );
}

/** @param {Browser} browser */
function browserCell({ name, ip_address: address, is_current: isCurrent }) {
  const line = el(
    "span",
    { class: "line" },
    el("span", {}, browserWords(name)),
    isCurrent && badge(t("browsers.this"), "good"),
  );
  return [line, address && el("span", { class: "hint mono" }, address)];
}

/**
 * @param {HTMLElement} host
 * @param {Browser} browser
 */
function stopButton(host, { id, name }) {
  const label = t("browsers.stop_one", { browser: browserWords(name) });
  const stop = async () => {
    const done = await asOwner(t("browsers.why"), async () => {
      await orSignIn(call("delete", "/auth/mfa/devices/{device_id}", { path: { device_id: id } }));
      return true;
    });
    if (done) await reload(host, t("browsers.stopped"));
  };
  const fail = async (/** @type {unknown} */ error) => {
    if (/** @type {{ code?: string }} */ (error).code !== "not_found") return showProblem(error);
    await reload(host, "").catch(showProblem);
    return showNotice(t("list.gone"));
  };
  return actButton(t("browsers.stop"), { class: "link", "aria-label": label }, stop, { fail });
}

/** @param {HTMLElement} host */
async function stopAll(host) {
  const isWanted = await confirmed({
    title: t("browsers.stop_all"),
    text: t("browsers.stop_all_text"),
    verb: t("browsers.stop_all"),
  });
  if (!isWanted) return;
  const done = await asOwner(t("browsers.why"), () =>
    orSignIn(call("delete", "/auth/mfa/devices")),
  );
  if (done) await reload(host, t("browsers.all_stopped", { count: done.removed }));
}

/**
 * @param {HTMLElement} host
 * @param {string} done what is said of it
 */
async function reload(host, done) {
  show(host, await orSignIn(list()));
  host.querySelector("h2")?.focus();
  if (done) toast(done);
}
