// @ts-check
// One team: name, storage, members with their roles, what happened, its end.

import { call, Refusal } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { moment, size } from "../base/format.js";
import { field, handle, mark, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { setTitle } from "../base/page.js";
import { showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actionText } from "../console/actions.js";
import { actButton, select, submitLine, warnOfLoss } from "../console/fields.js";
import { list } from "../console/list.js";
import { open } from "../console/open.js";
import { badge, empty, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { groupChoices, idOfAddress } from "./lookups.js";
import { carryOver, failedMeanwhile, isOutdated } from "./meanwhile.js";
import { quotaField } from "./quota.js";
import { membersPanel } from "./team_members.js";

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
  byId("title").textContent = team.name;
  setTitle(team.name);
  byId("lead").textContent = team.description;
  replace(byId("page-actions"), isArchived && badge(t("teams.archived"), "warn"));
  const first = isArchived ? restorePanel(team) : settingsPanel(team, groups);
  replace(
    byId("content"),
    first,
    membersPanel(path, isArchived, reload),
    eventsPanel(),
    isArchived ? null : archivePanel(),
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

function eventsPanel() {
  const events = el("div", { class: "list" });
  list({
    host: events,
    isAside: true,
    label: t("team.events"),
    ask: (query, signal) =>
      call("get", "/admin/teams/{id}/audit-logs", { path, query: { ...query, limit: 10 }, signal }),
    columns: [
      {
        label: t("audit.action"),
        cell: ({ action, presentation }) =>
          presentation ? t(`team_event.${presentation.summary.code}`) : actionText(action),
      },
      {
        label: t("team.member"),
        cell: ({ member, previous_role: before, next_role: after, role }) => [
          member && el("span", {}, member.username),
          (after ?? role) &&
            el(
              "span",
              { class: "hint" },
              before
                ? `${t(`team_role.${before}`)} → ${t(`team_role.${after ?? role}`)}`
                : t(`team_role.${after ?? role}`),
            ),
        ],
      },
      { label: t("audit.by"), cell: ({ actor }) => actor?.username ?? t("audit.system") },
      {
        label: t("audit.time"),
        cell: ({ created_at: at }) => el("time", { datetime: at }, moment(at)),
      },
    ],
  });
  return panel("events", t("team.events"), {}, events);
}

function archivePanel() {
  const archive = actButton(t("team.archive"), { class: "danger-line" }, async () => {
    if (
      !(await confirmed({
        title: t("team.archive"),
        text: t("team.archive_text"),
        verb: t("team.archive"),
      }))
    )
      return;
    await orSignIn(call("delete", "/admin/teams/{id}", { path }));
    await reload();
    toast(t("team.archived"));
  });
  return panel(
    "archive",
    t("team.archive"),
    { lead: t("team.archive_text") },
    el("div", { class: "form-actions" }, archive),
  );
}

/** @param {Team} team */
function restorePanel({ archived_at: at }) {
  const restore = actButton(
    t("team.restore"),
    { class: "primary" },
    async () => {
      await orSignIn(call("post", "/admin/teams/{id}/restore", { path }));
      await reload();
      toast(t("team.restored"));
    },
    { fail: (error) => failedMeanwhile(error, reload) },
  );
  return panel(
    "restore",
    t("team.is_archived"),
    { lead: t("team.since", { time: at ? moment(at) : "" }) },
    el("div", { class: "form-actions" }, restore),
  );
}
