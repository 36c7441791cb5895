// @ts-check
// The services with which people can sign in.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { ago, count } from "../base/format.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { reloadButton, whenSeenAgain } from "../console/list.js";
import { open } from "../console/open.js";
import { badge, empty, facts } from "../console/panel.js";

/** @typedef {import("../../types").Data<"get", "/admin/external-auth/providers">["items"][number]} Provider */

open(async () => {
  await show();
  const add = el("a", { class: "button primary", href: "/admin/external-auth/new" }, t("providers.add"));
  const again = () => show().catch(showProblem);
  byId("page-actions").append(add, reloadButton(again));
  whenSeenAgain(again);
});

async function show() {
  const { items } = await load(() => orSignIn(call("get", "/admin/external-auth/providers", { query: { limit: 100 } })));
  replace(byId("content"), items.length > 0 ? el("ul", { class: "cards" }, ...items.map(card)) : empty(t("providers.empty"), t("providers.empty_text")));
  byId("content").removeAttribute("aria-busy");
}

/** @param {Provider} provider */
function card(provider) {
  const { key, provider_kind: kind, display_name: name, enabled, links, last_sign_in_at: last, is_secret_readable: isReadable, redirect_uri: redirect } = provider;
  return el(
    "li",
    { class: "card panel" },
    el("div", { class: "panel-head" }, el("h2", {}, el("a", { href: `/admin/external-auth/${encodeURIComponent(key)}` }, name)), badge(enabled ? t("providers.on") : t("providers.off"), enabled ? "good" : "plain")),
    !isReadable && el("p", { class: "field-error" }, t("providers.no_secret")),
    !redirect && el("p", { class: "field-error" }, t("provider.no_redirect")),
    facts([
      [t("provider.kind"), t(`kind.${kind}`)],
      [t("provider.key"), el("span", { class: "mono" }, key)],
      [t("providers.links"), count(links)],
      [t("user.last_sign_in"), last ? ago(last) : t("never")],
    ]),
  );
}
