// @ts-check
// All accounts: searched, filtered, sorted; several changed at once.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { day, moment, size } from "../base/format.js";
import { t } from "../base/i18n.js";
import { onDemand } from "../base/retry.js";
import { avatar } from "../console/avatar.js";
import { actButton, button, select } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { badge } from "../console/panel.js";
import { bulkBar } from "./bulk.js";
import { groupChoices, nameOf, statusBadge } from "./lookups.js";
import { askForUser } from "./new_user.js";

/** @typedef {import("./lookups.js").User} User */

open(async ({ id: me }) => {
  const groups = await groupChoices();
  const host = el("div", { class: "list" });
  /** @type {Set<number>} */
  const chosen = new Set();
  const bar = bulkBar(chosen, groups, { me, host, reload: () => reload() });
  const filters = filterForm(groups);
  replace(byId("content"), filters, host, bar.node);
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("users.title"),
    filters,
    sorted: { by: "created_at", order: "desc" },
    opens: true,
    empty: { title: t("list.empty") },
    ask: async (query, signal) => {
      bar.begin(query);
      const found = await call("get", "/admin/users", { query, signal });
      bar.begin(query, found);
      return found;
    },
    selection: {
      idOf: ({ id }) => id,
      nameOf: ({ username }) => username,
      chosen,
      changed: bar.update,
    },
    columns: [
      { label: t("users.name"), sort: "username", cell: nameCell },
      {
        label: t("users.email"),
        sort: "email",
        cell: ({ email, email_verified: isVerified }) => [
          el("span", { class: "address" }, email),
          !isVerified && badge(t("users.unverified"), "warn"),
        ],
      },
      { label: t("users.role"), sort: "role", cell: ({ role }) => t(`role.${role}`) },
      { label: t("users.status"), sort: "status", cell: statusBadge },
      {
        label: t("users.storage"),
        sort: "storage_used",
        kind: "number",
        cell: ({ storage_used: used }) => size(used),
      },
      {
        label: t("users.created"),
        sort: "created_at",
        cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, day(at)),
      },
    ],
  });
  byId("page-actions").append(
    actButton(t("users.invite"), {}, async () => {
      const { askForAddress } = await onDemand(() => import("./invite.js"));
      askForAddress(() => undefined);
    }),
    button(t("users.new"), { class: "primary", click: () => askForUser(groups) }),
    reloadButton(reload),
  );
});

/** @param {User} user */
function nameCell(user) {
  const name = nameOf(user);
  const words = el(
    "span",
    {},
    el("span", {}, name),
    name !== user.username && el("span", { class: "hint" }, user.username),
  );
  return el(
    "a",
    { class: "person", href: `/admin/users/${user.id}` },
    avatar(name, user.profile.avatar.url_512),
    words,
  );
}

/** @param {[string, string][]} groups */
function filterForm(groups) {
  const all = /** @type {[string, string]} */ (["", t("list.all")]);
  const search = field(
    t("list.search"),
    textInput("keyword", { type: "search", maxlength: 255, placeholder: t("users.search_hint") }),
  );
  search.classList.add("wide");
  return el(
    "form",
    { class: "toolbar", role: "search" },
    search,
    field(
      t("users.role"),
      select("role", [all, ["user", t("role.user")], ["admin", t("role.admin")]]),
    ),
    field(
      t("users.status"),
      select("status", [
        all,
        ["active", t("user.status.active")],
        ["pending", t("user.status.pending")],
        ["disabled", t("user.status.disabled")],
      ]),
    ),
    groups.length > 1 && field(t("users.group"), select("policy_group_id", [all, ...groups])),
    field(
      t("users.second_factor"),
      select("has_second_factor", [all, ["true", t("users.with")], ["false", t("users.without")]]),
    ),
  );
}
