// @ts-check
// The teams of the account, and a new one.

import { call } from "../base/api.js";
import { formDialog } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { count, size } from "../base/format.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { button, warnOfLoss } from "../console/fields.js";
import { open } from "../console/open.js";
import { badge, empty, panel } from "../console/panel.js";
import { openRows } from "../console/place.js";
import { table } from "../console/table.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/teams">[number]} Team */

const MOST_AT_ONCE = 100; // so does the service
const NAME_LENGTH = 128;
const DESCRIPTION_LENGTH = 512;

open(async (me) => {
  const mayCreate = me.role === "admin" || byId("main").dataset.ownTeams !== undefined;
  const create = (kind = "secondary") =>
    mayCreate && button(t("teams.new"), { class: kind, click: () => askForTeam() });
  replace(byId("page-actions"), create("primary"));
  const [used, archived] = await load(() => Promise.all([all(false), all(true)]));
  replace(
    byId("content"),
    used.length > 0
      ? teamTable(t("teams.title"), used)
      : empty(
          t("own_teams.empty"),
          t(mayCreate ? "own_teams.empty_own" : "own_teams.empty_text"),
          create(),
        ),
    archived.length > 0 &&
      panel(
        "archived",
        t("teams.archived"),
        { lead: t("own_teams.archived_text") },
        teamTable(t("teams.archived"), archived),
      ),
  );
  openRows(byId("content"));
});

/** @param {boolean} archived */
async function all(archived) {
  /** @type {Team[]} */
  const found = [];
  for (;;) {
    const query = { archived, limit: MOST_AT_ONCE, offset: found.length };
    const part = await orSignIn(call("get", "/teams", { query }));
    found.push(...part);
    if (part.length < MOST_AT_ONCE) return found;
  }
}

/**
 * @param {string} label
 * @param {Team[]} teams
 */
function teamTable(label, teams) {
  return table(
    label,
    [
      {
        label: t("teams.name"),
        cell: (team) => [
          el("a", { href: `/settings/teams/${team.id}` }, team.name),
          team.description && el("span", { class: "hint" }, team.description),
        ],
      },
      { label: t("users.role"), cell: (team) => badge(t(`team_role.${team.my_role}`)) },
      { label: t("teams.members"), kind: "number", cell: (team) => count(team.member_count) },
      { label: t("users.storage"), kind: "number", cell: (team) => size(team.storage_used) },
    ],
    teams,
  );
}

function askForTeam() {
  const name = textInput("name", { id: "team-name", required: true, maxlength: NAME_LENGTH });
  formDialog(
    t("teams.new"),
    t("teams.create"),
    [
      field(t("teams.name"), name),
      field(
        t("teams.description"),
        textInput("description", { id: "team-description", maxlength: DESCRIPTION_LENGTH }),
      ),
    ],
    {
      async submit({ name = "", description = "" }) {
        const body = { name: name.trim(), description: description.trim() };
        const team = await orSignIn(call("post", "/teams", { body }));
        saved();
        await leaveFor(`/settings/teams/${team.id}`);
      },
    },
  );
  const saved = warnOfLoss(/** @type {HTMLFormElement} */ (name.form));
}
