// @ts-check
// The services with which people can sign in.

import { call } from "../base/api.js";
import { brandMark } from "../base/brands.js";
import { byId, el } from "../base/dom.js";
import { ago, count } from "../base/format.js";
import { t } from "../base/i18n.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { badge, facts } from "../console/panel.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/external-auth/providers">["items"][number]} Provider */

open(() => {
  /** @type {() => Promise<void>} */
  const reload = list({
    host: byId("content"),
    label: t("providers.title"),
    opens: true,
    empty: {
      title: t("providers.empty"),
      text: t("providers.empty_text"),
      actions: [adder("secondary")],
    },
    ask: (query, signal) =>
      call("get", "/admin/external-auth/providers", {
        query,
        signal,
      }),
    drawn: ({ items }) => [el("ul", { class: "cards" }, ...items.map(card))],
  });
  byId("page-actions").append(adder("primary"), reloadButton(reload));
});

/** @param {"primary" | "secondary"} kind */
function adder(kind) {
  return el("a", { class: `button ${kind}`, href: "/admin/external-auth/new" }, t("providers.add"));
}

/** @param {Provider} provider */
function card(provider) {
  const {
    key,
    provider_kind: kind,
    display_name: name,
    enabled,
    links,
    last_sign_in_at: last,
    is_secret_readable: isReadable,
    redirect_uri: redirect,
  } = provider;
  return el(
    "li",
    { class: "card panel" },
    el(
      "div",
      { class: "panel-head" },
      el(
        "h2",
        { class: "marked" },
        brandMark(kind),
        el("a", { href: `/admin/external-auth/${encodeURIComponent(key)}` }, name),
      ),
      badge(enabled ? t("providers.on") : t("providers.off"), enabled ? "good" : "plain"),
    ),
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
