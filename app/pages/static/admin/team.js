// @ts-check
// One team: name, storage, members with their roles, what happened, its end.

import { call, Refusal } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { size } from "../base/format.js";
import { field, handle, mark, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { entitle, idOfAddress } from "../base/page.js";
import { showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { select, submitLine, warnOfLoss } from "../console/fields.js";
import { carryOver, isOutdated } from "../console/meanwhile.js";
import { open } from "../console/open.js";
import { badge, empty, panel } from "../console/panel.js";
import { membersPanel, ROLES } from "../console/team_members.js";
import { archivePanel, eventsPanel, restorePanel } from "../console/team_parts.js";
import { toast } from "../console/toast.js";
import { groupChoices } from "./lookups.js";
import { quotaField } from "./quota.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/teams/{id}">} Team */

const path = { id: idOfAddress() };
/** What is filled in, also while the team is archived. @type {HTMLFormElement | null} */
let form = null;
/** The state of the team that the form was drawn from. */
let drawnFrom = "";

open(async () => {
  try {
    show(...(await load(read)));
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "not_found") throw error;
    replace(
      byId("content"),
      empty(t("team.none"), null, el("a", { href: "/admin/teams" }, t("team.back"))),
    );
  }
});

function read() {
  return orSignIn(Promise.all([call("get", "/admin/teams/{id}", { path }), groupChoices()]));
}

async function reload() {
  show(...(await read()));
}

/**
 * @param {Team} team
 * @param {[string, string][]} groups
 */
function show(team, groups) {
  const isArchived = team.archived_at !== null;
  entitle(team.name, team.description);
  replace(byId("page-actions"), isArchived && badge(t("teams.archived"), "warn"));
  const restore = () => call("post", "/admin/teams/{id}/restore", { path });
  const first = isArchived
    ? restorePanel(team.archived_at, restore, reload)
    : settingsPanel(team, groups);
  replace(
    byId("content"),
    first,
    membersPanel(access(isArchived)),
    eventsPanel(team.name, (query, signal) =>
      call("get", "/admin/teams/{id}/audit-logs", { path, query: { ...query, limit: 10 }, signal }),
    ),
    isArchived ? null : archivePanel(() => call("delete", "/admin/teams/{id}", { path }), reload),
  );
}

/**
 * @param {Team} team
 * @param {[string, string][]} groups
 */
function settingsPanel(team, groups) {
  const before = form?.closest("section");
  // The caret stays where somebody types.
  if (before && drawnFrom === team.updated_at) return before;
  drawnFrom = team.updated_at;
  const quota = quotaField(team.storage_quota);
  const drawn = el(
    "form",
    { method: "post", novalidate: true },
    field(t("teams.name"), textInput("name", { value: team.name, required: true, maxlength: 128 })),
    field(
      t("teams.description"),
      textInput("description", { value: team.description, maxlength: 1024 }),
    ),
    groups.length > 0 &&
      field(
        t("users.group"),
        select("policy_group_id", groups, { value: String(team.policy_group_id ?? "") }),
      ),
    quota.box,
    el("p", { class: "hint" }, t("profile.storage_used_now", { used: size(team.storage_used) })),
    submitLine(t("save")),
  );
  warnOfLoss(drawn);
  if (form) carryOver(form, drawn);
  form = drawn;
  handle(drawn, {
    busy: t("saving"),
    async submit({ name = "", description = "", policy_group_id: group }) {
      const bytes = quota.bytes();
      if (bytes === null) return mark(quota.input, t("quota.invalid"));
      const body = {
        name: name.trim(),
        description: description.trim(),
        storage_quota: bytes,
        expected_updated_at: team.updated_at,
        ...(group ? { policy_group_id: Number(group) } : {}),
      };
      try {
        const saved = await orSignIn(call("patch", "/admin/teams/{id}", { path, body }));
        form = null;
        show(saved, groups);
        toast(t("saved"));
      } catch (error) {
        if (!isOutdated(error)) throw error;
        await reload();
        showNotice(t("meanwhile.kept"), { kind: "warn" });
      }
    },
  });
  return panel("team", t("team.settings"), {}, drawn);
}

/** @param {boolean} isArchived */
function access(isArchived) {
  const member = (/** @type {string} */ id) => ({ ...path, user_id: id });
  /** @type {import("../console/team_members.js").Access} */
  const given = {
    ask: (query, signal) => call("get", "/admin/teams/{id}/members", { path, query, signal }),
    setRole: (id, body) =>
      call("patch", "/admin/teams/{id}/members/{user_id}", { path: member(id), body }),
    remove: (id) => call("delete", "/admin/teams/{id}/members/{user_id}", { path: member(id) }),
    add: (body) => call("post", "/admin/teams/{id}/members", { path, body }),
    roles: isArchived ? [] : ROLES,
    isAdmin: true,
    reloadTeam: reload,
  };
  return given;
}
