// @ts-check
// One service with which people can sign in: set up, tried, switched on, changed, deleted.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { byId, el, replace } from "../base/dom.js";
import { handle } from "../base/form.js";
import { brandMark } from "../base/brands.js";
import { t } from "../base/i18n.js";
import { entitle } from "../base/page.js";
import { showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, warnOfLoss } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { all } from "./lookups.js";
import { carryOver, isOutdated } from "../console/meanwhile.js";
import { isAsTested, valuesOf, fieldsOf } from "./provider_fields.js";
import { deletionPanel, isFine, redirectPanel, showTest } from "./provider_parts.js";

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
    const choose = el(
      "button",
      { type: "button", class: "secondary kind", click: () => show(kind, null) },
      brandMark(kind.kind),
      t(`kind.${kind.kind}`),
    );
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
  entitle(name);
  const result = el("div", { class: "tested", "aria-live": "polite" });
  const form = el("form", { method: "post", novalidate: true }, ...fieldsOf(kind, provider));
  const enabled = /** @type {HTMLInputElement} */ (form.elements.namedItem("enabled"));
  let edits = 0;
  const test = actButton(
    t("provider.test"),
    {},
    async () => {
      const before = edits;
      const found = await tried(kind, provider, form);
      if (before !== edits) return; // it is not what was tested any more
      if (!provider) {
        enabled.disabled = false;
        enabled.checked = isFine(found.checks);
      }
      showTest(result, found, provider?.enabled === false && switchOn(kind, provider, form));
    },
    { busy: t("provider.testing") },
  );
  if (!provider)
    form.addEventListener("input", ({ target }) => {
      if (isAsTested(target)) return;
      edits += 1;
      replace(result);
      enabled.checked = false;
      enabled.disabled = true;
    });
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
    redirectPanel((provider ?? kind).redirect_uri, form),
    provider?.enabled === false && el("p", { class: "note info" }, t("provider.is_off")),
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
 * Switches on what was tried; what is filled in and not saved stays so.
 * @param {Kind} kind
 * @param {Provider} provider
 * @param {HTMLFormElement} form
 */
function switchOn(kind, provider, form) {
  return actButton(t("provider.switch_on"), { class: "primary" }, async () => {
    const saved = await asOwner(t("provider.why"), () =>
      orSignIn(
        call("patch", "/admin/external-auth/providers/{id}", {
          path: { id: provider.id },
          body: { enabled: true, expected_updated_at: provider.updated_at },
        }),
      ),
    );
    if (!saved) return;
    toast(t("provider.switched_on"));
    show(kind, saved, form);
  });
}

/**
 * What is saved is tried as it is, a new one as it is filled in.
 * @param {Kind} kind
 * @param {Provider | null} provider
 * @param {HTMLFormElement} form
 */
async function tried(kind, provider, form) {
  if (provider) {
    const path = { id: provider.id };
    const found = await orSignIn(
      call("post", "/admin/external-auth/providers/{id}/test", { path }),
    );
    await catchUp(provider);
    return found;
  }
  // What a test has no use for is ignored.
  const filled = filledIn(kind, valuesOf(form, kind, null));
  const body = /** @type {Body<"post", "/admin/external-auth/providers/test">} */ (filled);
  return orSignIn(call("post", "/admin/external-auth/providers/test", { body }));
}

/**
 * A test counts as a change of the provider. What somebody else has changed meanwhile is still
 * noticed when it is saved.
 * @param {Provider} provider
 */
async function catchUp(provider) {
  const settings = (/** @type {Provider} */ one) =>
    JSON.stringify({ ...one, updated_at: "", links: 0, last_sign_in_at: "" });
  const now = await orSignIn(
    call("get", "/admin/external-auth/providers/{id}", { path: { id: provider.id } }),
  );
  if (settings(now) === settings(provider)) provider.updated_at = now.updated_at;
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
