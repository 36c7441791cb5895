// @ts-check
// What pages of a team have: what happened, its end, and its return.

import { confirmed } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actionText } from "./actions.js";
import { actButton } from "./fields.js";
import { list } from "./list.js";
import { failedMeanwhile } from "./meanwhile.js";
import { panel } from "./panel.js";
import { toast } from "./toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/teams/{id}/audit-logs">["items"][number]} Entry */

/**
 * What happened to a team and its members.
 * @param {import("./list.js").Listing<Entry>["ask"]} ask
 */
export function eventsPanel(ask) {
  const events = el("div", { class: "list" });
  list({
    host: events,
    isAside: true,
    label: t("team.events"),
    ask,
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
