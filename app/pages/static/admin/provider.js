// @ts-check
// One service with which people can sign in: set up, tried, switched on, changed, deleted.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace, say } from "../base/dom.js";
import { handle } from "../base/form.js";
import { asSaid, t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { leaveFor, setTitle } from "../base/page.js";
import { copyButton, showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, button, warnOfLoss } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { all } from "./lookups.js";
import { carryOver, isOutdated } from "../console/meanwhile.js";
import { checkName, inWords } from "./found.js";
import { valuesOf, fieldsOf } from "./provider_fields.js";

/** @import { Body, Data } from "../../types" */
/** @import { Slice } from "./lookups.js" */
/** @typedef {Data<"get", "/admin/external-auth/provider-kinds">[number]} Kind */
/** @typedef {Data<"get", "/admin/external-auth/providers">["items"][number]} Provider */
/** @typedef {Data<"post", "/admin/external-auth/providers/{id}/test">} Test */

const key = decodeURIComponent(String(window.location.pathname.split("/").at(-1)));

open(async () => {
  const [kinds, providers] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/admin/external-auth/provider-kinds"),
        all((/** @type {Slice} */ query) =>
          call("get", "/admin/external-auth/providers", { query }),
        ),
      ]),
    ),
  );
  if (key === "new") return chooseKind(kinds);
  const provider = providers.find((one) => one.key === key);
  const kind = kinds.find((one) => one.kind === provider?.provider_kind);
  if (provider && kind) return show(kind, provider);
  replace(
    byId("content"),
    empty(t("provider.none"), null, el("a", { href: "/admin/external-auth" }, t("provider.back"))),
  );
});

/** @param {Kind[]} kinds */
function chooseKind(kinds) {
  byId("title").textContent = t("providers.add");
  const cards = kinds.map((kind) => {
    const choose = button(t(`kind.${kind.kind}`), {
      class: "secondary kind",
      click: () => show(kind, null),
    });
    return el("li", {}, choose);
  });
  replace(
    byId("content"),
    panel("kinds", t("provider.choose"), {}, el("ul", { class: "kinds" }, ...cards)),
  );
}

/**
 * @param {Kind} kind
 * @param {Provider | null} provider null for a new one
 * @param {HTMLFormElement} [draft] what is filled in and not saved
 */
function show(kind, provider, draft) {
  const name = provider?.display_name ?? t(`kind.${kind.kind}`);
  byId("title").textContent = name;
  setTitle(name);
  const result = el("div", { "aria-live": "polite" });
  const form = el("form", { method: "post", novalidate: true }, ...fieldsOf(kind, provider));
  const test = actButton(
    t("provider.test"),
    {},
    async () => showTest(result, await tried(kind, provider, form)),
    { busy: t("provider.testing") },
  );
  form.append(
    result,
    el(
      "div",
      { class: "form-actions" },
      el(
        "button",
        { type: "submit", class: "primary" },
        provider ? t("save") : t("provider.create"),
      ),
      test,
    ),
  );
  warnOfLoss(form);
  if (draft) carryOver(draft, form);
  handle(form, {
    busy: t("saving"),
    fields: { conflict: "key" },
    async submit() {
      try {
        const saved = await asOwner(t("provider.why"), () => orSignIn(save(kind, provider, form)));
        if (!saved) return;
        toast(t("saved"));
        show(kind, saved);
        if (!provider)
          window.history.replaceState(
            null,
            "",
            `/admin/external-auth/${encodeURIComponent(saved.key)}`,
          );
      } catch (error) {
        if (!provider || !isOutdated(error)) throw error;
        show(
          kind,
          await orSignIn(
            call("get", "/admin/external-auth/providers/{id}", { path: { id: provider.id } }),
          ),
          form,
        );
        showNotice(t("meanwhile.kept"), { kind: "warn" });
      }
    },
  });
  replace(
    byId("content"),
    provider && redirectPanel(provider),
    panel("settings", t("provider.settings"), {}, form),
    provider && deletionPanel(provider),
  );
  byId("title").focus();
}

/**
 * @param {Kind} kind
 * @param {Provider | null} provider
 * @param {HTMLFormElement} form
 * @returns {Promise<Provider>}
 */
function save(kind, provider, form) {
  const values = valuesOf(form, kind, provider);
  if (!provider)
    return call("post", "/admin/external-auth/providers", { body: filledIn(kind, values) });
  const body = { ...values, expected_updated_at: provider.updated_at };
  return call("patch", "/admin/external-auth/providers/{id}", { path: { id: provider.id }, body });
}

/**
 * What is saved is tried as it is, a new one as it is filled in.
 * @param {Kind} kind
 * @param {Provider | null} provider
 * @param {HTMLFormElement} form
 */
function tried(kind, provider, form) {
  if (provider)
    return orSignIn(
      call("post", "/admin/external-auth/providers/{id}/test", { path: { id: provider.id } }),
    );
  // What a test has no use for is ignored.
  const filled = filledIn(kind, valuesOf(form, kind, null));
  const body = /** @type {Body<"post", "/admin/external-auth/providers/test">} */ (filled);
  return orSignIn(call("post", "/admin/external-auth/providers/test", { body }));
}

/**
 * A new one; what it lacks is refused by the service.
 * @param {Kind} kind
 * @param {ReturnType<typeof valuesOf>} values
 */
function filledIn(kind, values) {
  return /** @type {Body<"post", "/admin/external-auth/providers">} */ ({
    provider_kind: kind.kind,
    ...values,
  });
}

/**
 * @param {HTMLElement} host
 * @param {Test} test
 */
function showTest(host, { checks }) {
  const isFine = checks.every((one) => one.success);
  say(t(isFine ? "provider.fine" : "provider.not_fine"));
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
    el("p", {}, t(isFine ? "provider.fine" : "provider.not_fine")),
    el("ul", { class: "checks" }, ...lines),
  );
}

/** @param {Provider} provider */
function redirectPanel({ redirect_uri: url }) {
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
  return panel(
    "redirect",
    t("provider.redirect"),
    { lead: t("provider.redirect_text") },
    el("p", { class: "line" }, el("code", {}, url), copyButton(url, { class: "secondary small" })),
  );
}

/** @param {Provider} provider */
function deletionPanel({ id, display_name: name, links }) {
  const path = { id: String(id) };
  const remove = actButton(t("provider.delete"), { class: "danger" }, async () => {
    const isWanted = await confirmed({
      title: t("provider.delete_title", { name }),
      text: t("provider.delete_text", { count: links }),
      verb: t("provider.delete"),
      typed: name,
    });
    if (isWanted && (await removed(path, name))) await leaveFor("/admin/external-auth");
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
