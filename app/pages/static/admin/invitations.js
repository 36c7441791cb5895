// @ts-check
// Invitations: sent, sent again, withdrawn. A link is shown once, when it is made.

import { call } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { ago, day, moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton, button, select } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { badge } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { askForAddress, showLink } from "./invite.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/users/invitations">["items"][number]} Invitation */

const STATUSES = /** @type {const} */ (["pending", "accepted", "expired", "revoked"]);
const KINDS = /** @type {const} */ ({
  pending: "warn",
  accepted: "good",
  expired: "plain",
  revoked: "plain",
});

open(() => {
  const host = el("div", { class: "list" });
  const search = field(t("list.search"), textInput("keyword", { type: "search", maxlength: 255 }));
  search.classList.add("wide");
  const filters = el(
    "form",
    { class: "toolbar", role: "search" },
    search,
    field(
      t("users.status"),
      select("status", [
        ["", t("list.all")],
        ...STATUSES.map((one) => /** @type {[string, string]} */ ([one, t(`invitations.${one}`)])),
      ]),
    ),
  );
  const invite = (/** @type {string} */ kind) =>
    button(t("invitations.new"), { class: kind, click: () => askForAddress(() => reload()) });
  replace(byId("content"), filters, host);
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("invitations.title"),
    filters,
    empty: {
      title: t("invitations.empty"),
      text: t("invitations.empty_text"),
      actions: [invite("secondary")],
    },
    ask: (query, signal) =>
      call("get", "/admin/users/invitations", {
        query,
        signal,
      }),
    columns: [
      { label: t("users.email"), cell: ({ email }) => email },
      { label: t("users.status"), cell: statusCell },
      { label: t("invitations.by"), cell: inviterCell },
      {
        label: t("invitations.sent"),
        cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, ago(at)),
      },
      {
        label: t("invitations.until"),
        cell: ({ expires_at: at }) => el("time", { datetime: at, title: moment(at) }, day(at)),
      },
      {
        label: t("invitations.manage"),
        kind: "actions",
        cell: (one) => actions(one, () => reload()),
      },
    ],
  });
  byId("page-actions").append(invite("primary"), reloadButton(reload));
});

/** @param {Invitation} invitation */
function statusCell({ status }) {
  return badge(t(`invitations.${status}`), KINDS[status]);
}

/** @param {Invitation} invitation */
function inviterCell({ invited_by: id, invited_by_username: name }) {
  return id ? el("a", { href: `/admin/users/${id}` }, name || String(id)) : "–";
}

/**
 * @param {Invitation} invitation
 * @param {() => Promise<void>} reload
 */
function actions({ id, email, status, accepted_user_id: account }, reload) {
  if (status === "accepted")
    return account
      ? el("a", { href: `/admin/users/${account}` }, t("invitations.to_account"))
      : null;
  const path = { id: String(id) };
  const again = actButton(
    t("invitations.resend"),
    { class: "link", "aria-label": `${t("invitations.resend")}: ${email}` },
    async () => {
      const made = await orSignIn(call("post", "/admin/users/invitations/{id}/resend", { path }));
      await showLink(made);
      await reload();
    },
  );
  const revoke = actButton(
    t("invitations.revoke"),
    { class: "link", "aria-label": `${t("invitations.revoke")}: ${email}` },
    async () => {
      const isWanted = await confirmed({
        title: t("invitations.revoke_title", { email }),
        text: t("invitations.revoke_text"),
        verb: t("invitations.revoke"),
      });
      if (!isWanted) return;
      await orSignIn(call("post", "/admin/users/invitations/{id}/revoke", { path }));
      toast(t("invitations.withdrawn"));
      await reload();
    },
  );
  return [again, status === "pending" && revoke];
}
