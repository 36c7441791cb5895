// @ts-check
// What pages of a team have: what happened, its end, and its return.

import { confirmed } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { moment } from "../base/format.js";
import { rich, t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { eventSentence, named, sentence, unnamed } from "./actions.js";
import { actButton } from "./fields.js";
import { list } from "./list.js";
import { failedMeanwhile } from "./meanwhile.js";
import { panel } from "./panel.js";
import { toast } from "./toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/teams/{id}/audit-logs">["items"][number]} Entry */

/**
 * What happened to a team and its members.
 * @param {string} name of the team
 * @param {import("./list.js").Listing<Entry>["ask"]} ask
 */
export function eventsPanel(name, ask) {
  const events = el("div", { class: "list" });
  list({
    host: events,
    isAside: true,
    label: t("team.events"),
    ask,
    columns: [
      { label: t("audit.action"), cell: (entry) => sentence(sentenceOf(entry, name)) },
      {
        label: t("audit.time"),
        cell: ({ created_at: at }) => el("time", { datetime: at }, moment(at)),
      },
    ],
  });
  return panel("events", t("team.events"), {}, events);
}

/**
 * @param {Entry} entry
 * @param {string} name of the team
 */
function sentenceOf({ action, actor: who, member, presentation, ...roles }, name) {
  const actor = named(who?.username ?? t("event.system"));
  const code = presentation?.summary.code;
  const { previous_role: before, next_role: after, role = null } = roles;
  // What version 0.2 wrote may lack a role.
  if (!code || (code.endsWith("_update") && !before))
    return eventSentence(action, { actor, name: named(name) });
  return rich(`team_event.${code}`, {
    actor,
    member: named(member?.username ?? unnamed()),
    before: t(`team_role.${before}`),
    after: t(`team_role.${after ?? role}`),
  });
}

/**
 * @param {() => Promise<unknown>} end archives the team
 * @param {() => Promise<void>} reload
 */
export function archivePanel(end, reload) {
  const archive = actButton(t("team.archive"), { class: "danger-line" }, async () => {
    if (
      !(await confirmed({
        title: t("team.archive"),
        text: t("team.archive_text"),
        verb: t("team.archive"),
      }))
    )
      return;
    await orSignIn(end());
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

/**
 * @param {string | null} at when it was archived
 * @param {(() => Promise<unknown>) | null} bring restores the team; null where one may not
 * @param {() => Promise<void>} reload
 */
export function restorePanel(at, bring, reload) {
  const restore = actButton(
    t("team.restore"),
    { class: "primary" },
    async () => {
      if (bring) await orSignIn(bring());
      await reload();
      toast(t("team.restored"));
    },
    { fail: (error) => failedMeanwhile(error, reload) },
  );
  return panel(
    "restore",
    t("team.is_archived"),
    { lead: t("team.since", { time: at ? moment(at) : "" }) },
    bring && el("div", { class: "form-actions" }, restore),
  );
}
