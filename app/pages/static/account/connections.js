// @ts-check
// Accounts elsewhere with which somebody can sign in.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { brandMark } from "../base/brands.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { ago, day, moment } from "../base/format.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, button } from "../console/fields.js";
import { open } from "../console/open.js";
import { empty, panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/external-auth/links">[number]} Link */
/** @typedef {Data<"get", "/auth/external-auth/providers">[number]} Provider */

const OWN = { conflict: "security.last_way" };

open(async () => {
  await show();
  document.addEventListener(
    "visibilitychange",
    () => document.hidden || document.querySelector("dialog") || show().catch(showProblem),
  );
});

async function show() {
  const [links, providers] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/auth/external-auth/links"),
        call("get", "/auth/external-auth/providers"),
      ]),
    ),
  );
  const linked = new Set(links.map((one) => `${one.provider_kind}/${one.provider_key}`));
  const free = providers.filter((one) => !linked.has(`${one.kind}/${one.key}`));
  replace(
    byId("content"),
    linksPanel(links, free),
    links.length > 0 && free.length > 0 && connectPanel(free),
  );
}

/**
 * @param {Link[]} links
 * @param {Provider[]} free those that are not connected
 */
function linksPanel(links, free) {
  const columns = [
    {
      label: t("connections.service"),
      cell: (/** @type {Link} */ one) =>
        el("span", { class: "marked" }, brandMark(one.provider_kind), one.provider_display_name),
    },
    {
      label: t("connections.account"),
      cell: (/** @type {Link} */ one) =>
        one.email_snapshot ||
        one.display_name_snapshot ||
        el("span", { class: "mono" }, one.subject),
    },
    {
      label: t("connections.since"),
      cell: (/** @type {Link} */ { created_at: at }) =>
        el("time", { datetime: at, title: moment(at) }, day(at)),
    },
    {
      label: t("connections.used"),
      cell: (/** @type {Link} */ { last_login_at: at }) =>
        at ? el("time", { datetime: at, title: moment(at) }, ago(at)) : t("never"),
    },
    {
      label: t("connections.disconnect"),
      kind: /** @type {const} */ ("actions"),
      cell: disconnectButton,
    },
  ];
  return panel(
    "links",
    t("connections.yours"),
    {},
    links.length > 0
      ? table(t("connections.yours"), columns, links)
      : empty(
          t("connections.empty"),
          t(free.length > 0 ? "connections.empty_text" : "connections.none_offered"),
          ...connectButtons(free),
        ),
  );
}

/** @param {Link} link */
function disconnectButton(link) {
  const name = link.provider_display_name;
  const remove = button(t("connections.disconnect"), {
    class: "link",
    "aria-label": `${t("connections.disconnect")}: ${name}`,
  });
  const work = async () => {
    const isWanted = await confirmed({
      title: t("connections.disconnect_title", { name }),
      text: t("connections.disconnect_text", { name }),
      verb: t("connections.disconnect"),
    });
    if (!isWanted) return;
    const isDone = await asOwner(t("connections.why"), async () => {
      await orSignIn(
        call("delete", "/auth/external-auth/links/{link_id}", { path: { link_id: link.id } }),
      );
      return true;
    });
    if (!isDone) return;
    toast(t("connections.disconnected", { name }));
    await show();
    byId("title").focus();
  };
  remove.addEventListener("click", () => act(remove, t("one_moment"), work, { own: OWN }));
  return remove;
}

/** @param {Provider[]} providers */
function connectButtons(providers) {
  return providers.map((provider) => {
    const connect = actButton(t("connections.connect", { name: provider.display_name }), {}, () =>
      begin(provider),
    );
    connect.prepend(brandMark(provider.kind) ?? "");
    return connect;
  });
}

/** @param {Provider[]} providers */
function connectPanel(providers) {
  return panel(
    "connect",
    t("connections.more"),
    { lead: t("connections.more_lead") },
    el("div", { class: "form-actions" }, ...connectButtons(providers)),
  );
}

/** @param {Provider} provider */
async function begin({ kind, key }) {
  const body = { intent: /** @type {const} */ ("link"), return_path: "/settings/connections" };
  const started = await asOwner(t("connections.why"), () =>
    orSignIn(
      call("post", "/auth/external-auth/{kind}/{provider}/start", {
        path: { kind, provider: key },
        body,
      }),
    ),
  );
  if (started) await leaveFor(started.authorization_url);
}
