// @ts-check
// What a provider's page has beside its form: the redirect address, what a test found, deletion.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace, say } from "../base/dom.js";
import { asSaid, t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { leaveFor } from "../base/page.js";
import { copyButton } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { panel } from "../console/panel.js";
import { checkName, inWords } from "./found.js";

/** @import { Provider, Test } from "./provider.js" */

/**
 * The address to enter at the provider; of a new one it follows the key that is typed.
 * @param {string | null} url `{key}` in it stands for the key
 * @param {HTMLFormElement} form
 */
export function redirectPanel(url, form) {
  if (!url)
    return el(
      "div",
      { class: "note warn" },
      el(
        "p",
        {},
        t("provider.no_redirect"),
        " ",
        el("a", { href: "/admin/settings/site" }, t("settings.title")),
      ),
    );
  const key = form.elements.namedItem("key");
  const line = el("p", { class: "line" });
  const draw = () => {
    const typed = key instanceof HTMLInputElement ? key.value.trim().toLowerCase() : "";
    if (url.includes("{key}") && !typed) return replace(line, t("provider.redirect_key"));
    const shown = url.replace("{key}", typed);
    replace(line, el("code", {}, shown), copyButton(shown, { class: "secondary small" }));
  };
  form.addEventListener("input", draw);
  draw();
  return panel("redirect", t("provider.redirect"), { lead: t("provider.redirect_text") }, line);
}

/**
 * @param {HTMLElement} host
 * @param {Test} test
 * @param {HTMLElement | false} next what is offered now
 */
export function showTest(host, { checks }, next) {
  const result = t(isFine(checks) ? "provider.fine" : "provider.not_fine");
  say(result);
  const lines = checks.map(({ name, success, ...found }) =>
    el(
      "li",
      { class: success ? "ok" : "fail" },
      icon(success ? "done" : "problem"),
      el("div", {}, el("strong", {}, checkName(name)), el("p", {}, inWords(found))),
    ),
  );
  replace(
    host,
    el("p", {}, result),
    el("ul", { class: "checks" }, ...lines),
    next && el("p", {}, next),
  );
}

/** @param {Test["checks"]} checks */
export function isFine(checks) {
  return checks.every((one) => one.success);
}

/** @param {Provider} provider */
export function deletionPanel({ id, display_name: name, links }) {
  const path = { id: String(id) };
  const remove = actButton(t("provider.delete"), { class: "danger" }, async () => {
    const isWanted = await confirmed({
      title: t("provider.delete_title", { name }),
      text: t("provider.delete_text", { count: links }),
      verb: t("provider.delete"),
      typed: name,
    });
    if (!isWanted || !(await removed(path, name))) return;
    replace(byId("content")); // what is filled in is not to be kept any more
    await leaveFor("/admin/external-auth");
  });
  return panel(
    "deletion",
    t("provider.delete"),
    { lead: t("provider.delete_text", { count: links }) },
    el("div", { class: "form-actions" }, remove),
  );
}

/**
 * Deletes it; where accounts could not sign in any more, only after a second question.
 * @param {{ id: string }} path
 * @param {string} name
 */
async function removed(path, name) {
  const attempt = (/** @type {boolean} */ force) =>
    asOwner(t("provider.why"), async () => {
      await orSignIn(
        call("delete", "/admin/external-auth/providers/{id}", { path, query: { force } }),
      );
      return true;
    });
  try {
    return await attempt(false);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "conflict") throw error;
    const isForced = await confirmed({
      title: t("provider.delete_title", { name }),
      text: el("p", {}, asSaid(error.msg)),
      verb: t("provider.delete_anyway"),
    });
    return isForced && attempt(true);
  }
}
