// @ts-check
// All teams: found, created; the archived ones can be restored for a while.

import { call } from "../base/api.js";
import { formDialog } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { count, day, moment, size } from "../base/format.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { orSignIn } from "../base/session.js";
import { button, select, warnOfLoss } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";

const MAX_NAME_LENGTH = 128;

open(() => {
  const host = el("div", { class: "list" });
  const search = field(t("list.search"), textInput("keyword", { type: "search", maxlength: 255 }));
  search.classList.add("wide");
  const filters = el(
    "form",
    { class: "toolbar", role: "search" },
    search,
    field(
      t("teams.which"),
      select("archived", [
        ["", t("teams.in_use")],
        ["true", t("teams.archived")],
      ]),
    ),
  );
  replace(byId("content"), filters, host);
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("teams.title"),
    filters,
    sorted: { by: "created_at", order: "desc" },
    opens: true,
    empty: { title: t("teams.empty"), text: t("teams.empty_text"), actions: [adder("secondary")] },
    ask: (query, signal) => call("get", "/admin/teams", { query, signal }),
    columns: [
      {
        label: t("teams.name"),
        sort: "name",
        cell: (team) => [
          el("a", { href: `/admin/teams/${team.id}` }, team.name),
          team.description && el("span", { class: "hint" }, team.description),
        ],
      },
      { label: t("teams.members"), kind: "number", cell: (team) => count(team.member_count) },
      {
        label: t("users.storage"),
        sort: "storage_used",
        kind: "number",
        cell: (team) => size(team.storage_used),
      },
      {
        label: t("users.created"),
        sort: "created_at",
        cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, day(at)),
      },
    ],
  });
  byId("page-actions").append(adder("primary"), reloadButton(reload));
});

/** @param {"primary" | "secondary"} kind */
function adder(kind) {
  return button(t("teams.new"), { class: kind, click: askForTeam });
}

function askForTeam() {
  const name = textInput("name", { id: "team-name", required: true, maxlength: MAX_NAME_LENGTH });
  const close = formDialog(
    t("teams.new"),
    t("teams.create"),
    [
      field(t("teams.name"), name),
      field(
        t("teams.description"),
        textInput("description", { id: "team-description", maxlength: 1024 }),
      ),
      field(
        t("teams.owner"),
        textInput("owner", { id: "team-owner", required: true, autocapitalize: "none" }),
        { hint: t("teams.owner_hint") },
      ),
    ],
    {
      fields: { not_found: "owner", conflict: "owner" },
      own: { not_found: "teams.no_account" },
      async submit({ name: wanted = "", description = "", owner = "" }) {
        const body = {
          name: wanted.trim(),
          description: description.trim(),
          admin_identifier: owner.trim(),
        };
        const team = await orSignIn(call("post", "/admin/teams", { body }));
        close();
        await leaveFor(`/admin/teams/${team.id}`);
      },
    },
  );
  warnOfLoss(/** @type {HTMLFormElement} */ (name.form));
}
