// @ts-check
// One team of the account: what a member sees, and what its owners and administrators change.

import { call, Refusal } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, handle, textInput } from "../base/form.js";
import { size } from "../base/format.js";
import { t } from "../base/i18n.js";
import { entitle, idOfAddress, leaveFor } from "../base/page.js";
import { showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, submitLine, warnOfLoss } from "../console/fields.js";
import { carryOver, failedMeanwhile, isOutdated } from "../console/meanwhile.js";
import { open } from "../console/open.js";
import { badge, empty, panel } from "../console/panel.js";
import { membersPanel, ROLES } from "../console/team_members.js";
import { archivePanel, eventsPanel, restorePanel } from "../console/team_parts.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/teams/{id}">} Team */

const NAME_LENGTH = 128;
const DESCRIPTION_LENGTH = 512;

const path = { id: idOfAddress() };
/** What is filled in. @type {HTMLFormElement | null} */
let form = null;
let me = 0;

open(async (who) => {
  me = who.id;
  try {
    show(await load(read));
  } catch (error) {
    if (!isGone(error)) throw error;
    replace(
      byId("content"),
      empty(t("team.none"), null, el("a", { href: "/settings/teams" }, t("own_teams.back"))),
    );
  }
});

/** @param {unknown} error */
function isGone(error) {
  return error instanceof Refusal && ["not_found", "team.not_member"].includes(error.code);
}

function read() {
  return orSignIn(call("get", "/teams/{id}", { path }));
}

/** Shows the team as it is now; who is out of it goes back to the others. */
async function reload() {
  try {
    show(await read());
  } catch (error) {
    if (!isGone(error)) throw error;
    await leaveFor("/settings/teams");
  }
}

/** @param {Team} team */
function show(team) {
  const isArchived = team.archived_at !== null;
  const isOwner = team.my_role === "owner";
  const isManager = isOwner || team.my_role === "admin";
  entitle(team.name, team.description);
  replace(
    byId("page-actions"),
    badge(t(`team_role.${team.my_role}`)),
    isArchived && badge(t("teams.archived"), "warn"),
  );
  const restore = () => call("post", "/teams/{id}/restore", { path });
  const archive = () => call("delete", "/teams/{id}", { path });
  replace(
    byId("content"),
    isArchived && restorePanel(team.archived_at, isManager ? restore : null, reload),
    !isArchived && isManager ? settingsPanel(team) : storagePanel(team),
    membersPanel(access(isArchived ? "member" : team.my_role)),
    isManager &&
      eventsPanel(team.name, (query, signal) =>
        call("get", "/teams/{id}/audit-logs", { path, query: { ...query, limit: 10 }, signal }),
      ),
    leavePanel(team),
    !isArchived && isOwner && archivePanel(archive, reload),
  );
}

/** @param {Team["my_role"]} role */
function access(role) {
  const member = (/** @type {string} */ id) => ({ ...path, user_id: id });
  const given = { owner: ROLES, admin: ROLES.slice(1), member: [] };
  /** @type {import("../console/team_members.js").Access} */
  const found = {
    ask: (query, signal) => call("get", "/teams/{id}/members", { path, query, signal }),
    setRole: async (id, body) => {
      await call("patch", "/teams/{id}/members/{user_id}", { path: member(id), body });
      // What one may do oneself has changed.
      if (id === String(me)) await reload();
    },
    remove: (id) => call("delete", "/teams/{id}/members/{user_id}", { path: member(id) }),
    add: (body) => call("post", "/teams/{id}/members", { path, body }),
    roles: given[role],
    me,
    reloadTeam: reload,
  };
  return found;
}

/** @param {Team} team */
function storageOf({ storage_used: used, storage_quota: quota }) {
  return quota > 0
    ? t("own_teams.used_of", { used: size(used), quota: size(quota) })
    : t("profile.storage_used_now", { used: size(used) });
}

/** @param {Team} team */
function storagePanel(team) {
  return panel("team", t("users.storage"), {}, el("p", {}, storageOf(team)));
}

/** @param {Team} team */
function settingsPanel(team) {
  const drawn = el(
    "form",
    { method: "post", novalidate: true },
    field(
      t("teams.name"),
      textInput("name", { value: team.name, required: true, maxlength: NAME_LENGTH }),
    ),
    field(
      t("teams.description"),
      textInput("description", { value: team.description, maxlength: DESCRIPTION_LENGTH }),
    ),
    el("p", { class: "hint" }, storageOf(team)),
    submitLine(t("save")),
  );
  warnOfLoss(drawn);
  if (form) carryOver(form, drawn);
  form = drawn;
  handle(drawn, {
    busy: t("saving"),
    async submit({ name = "", description = "" }) {
      const body = {
        name: name.trim(),
        description: description.trim(),
        expected_updated_at: team.updated_at,
      };
      try {
        const saved = await orSignIn(call("patch", "/teams/{id}", { path, body }));
        form = null;
        show(saved);
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

/** @param {Team} team */
function leavePanel({ name }) {
  const leave = actButton(
    t("own_teams.leave"),
    { class: "danger-line" },
    async () => {
      const question = {
        title: t("own_teams.leave_title", { name }),
        text: t("own_teams.leave_text"),
        verb: t("own_teams.leave"),
      };
      if (!(await confirmed(question))) return;
      const mine = { ...path, user_id: String(me) };
      await orSignIn(call("delete", "/teams/{id}/members/{user_id}", { path: mine }));
      await leaveFor("/settings/teams");
    },
    { fail: (error) => failedMeanwhile(error, reload) },
  );
  return panel(
    "leave",
    t("own_teams.leave"),
    { lead: t("own_teams.leave_text") },
    el("div", { class: "form-actions" }, leave),
  );
}
