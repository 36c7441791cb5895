// @ts-check
// Who is in a team, and as what.

import { call } from "../base/api.js";
import { confirmed, formDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { avatar } from "../console/avatar.js";
import { actButton, button, select } from "../console/fields.js";
import { list } from "../console/list.js";
import { badge, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { failedMeanwhile, isOutdated } from "./meanwhile.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/teams/{id}/members">["items"][number]} Member */

const ROLES = /** @type {const} */ (["owner", "admin", "member"]);

/** @returns {[string, string][]} */
function roleChoices() {
  return ROLES.map((one) => [one, t(`team_role.${one}`)]);
}

/**
 * @param {{ id: string }} path
 * @param {boolean} isArchived nothing can be changed then
 * @param {() => Promise<void>} reloadTeam
 */
export function membersPanel(path, isArchived, reloadTeam) {
  const host = el("div", { class: "list" });
  const add = button(t("team.add"), {
    click: () => askForMember(path, () => reload(), reloadTeam),
  });
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("teams.members"),
    ask: (query, signal) =>
      call("get", "/admin/teams/{id}/members", {
        path,
        query,
        signal,
      }),
    columns: [
      { label: t("users.name"), cell: nameCell },
      {
        label: t("users.email"),
        cell: ({ email, status }) => [
          el("span", {}, email),
          status === "disabled" && badge(t("user.status.disabled"), "bad"),
        ],
      },
      {
        label: t("users.role"),
        cell: (member) =>
          isArchived
            ? t(`team_role.${member.role}`)
            : roleSelect(path, member, () => reload(), reloadTeam),
      },
      {
        label: t("remove"),
        kind: "actions",
        cell: (member) =>
          isArchived ? null : removeButton(path, member, () => reload(), reloadTeam),
      },
    ],
  });
  return panel("members", t("teams.members"), { actions: isArchived ? [] : [add] }, host);
}

/** @param {Member} member */
function nameCell({ user }) {
  const name = user.profile.display_name || user.username;
  return el(
    "a",
    { class: "person", href: `/admin/users/${user.id}` },
    avatar(name, user.profile.avatar.url_512),
    el("span", {}, name),
  );
}

/**
 * @param {{ id: string }} path
 * @param {Member} member
 * @param {() => Promise<void>} reload
 * @param {() => Promise<void>} reloadTeam
 */
function roleSelect(path, { user, role, updated_at }, reload, reloadTeam) {
  const choice = select(`role-${user.id}`, roleChoices(), {
    value: role,
    class: "narrow",
    "aria-label": t("team.role_of", { name: user.username }),
  });
  choice.addEventListener("change", async () => {
    try {
      const body = {
        role: /** @type {Member["role"]} */ (choice.value),
        expected_updated_at: updated_at,
      };
      await orSignIn(
        call("patch", "/admin/teams/{id}/members/{user_id}", {
          path: { ...path, user_id: String(user.id) },
          body,
        }),
      );
      toast(t("saved"));
      await reload();
    } catch (error) {
      choice.value = role;
      await failedMeanwhile(error, reloadTeam);
    }
  });
  return choice;
}

/**
 * @param {{ id: string }} path
 * @param {Member} member
 * @param {() => Promise<void>} reload
 * @param {() => Promise<void>} reloadTeam
 */
function removeButton(path, { user }, reload, reloadTeam) {
  const name = user.username;
  return actButton(
    t("remove"),
    { class: "link", "aria-label": `${t("remove")}: ${name}` },
    async () => {
      if (
        !(await confirmed({
          title: t("user.remove_title", { name }),
          text: t("team.remove_text", { name }),
          verb: t("remove"),
        }))
      )
        return;
      await orSignIn(
        call("delete", "/admin/teams/{id}/members/{user_id}", {
          path: { ...path, user_id: String(user.id) },
        }),
      );
      toast(t("user.removed"));
      await reload();
    },
    { fail: (error) => failedMeanwhile(error, reloadTeam) },
  );
}

/**
 * @param {{ id: string }} path
 * @param {() => Promise<void>} reload
 * @param {() => Promise<void>} reloadTeam
 */
function askForMember(path, reload, reloadTeam) {
  let isArchived = false;
  const who = textInput("identifier", { id: "member", required: true, autocapitalize: "none" });
  const fields = {
    not_found: "identifier",
    "team.member_exists": "identifier",
    conflict: "identifier",
    bad_request: "identifier",
  };
  const close = formDialog(
    t("team.add"),
    t("team.add"),
    [
      field(t("teams.owner_account"), who),
      field(t("users.role"), select("role", roleChoices(), { id: "member-role", value: "member" })),
    ],
    {
      fields,
      own: { not_found: "teams.no_account" },
      async submit({ identifier = "", role }) {
        const body = { identifier: identifier.trim(), role: /** @type {Member["role"]} */ (role) };
        await orSignIn(call("post", "/admin/teams/{id}/members", { path, body }));
        close();
        toast(t("saved"));
        await reload();
      },
      taken(refusal) {
        isArchived ||= isOutdated(refusal);
        if (!(refusal.code in fields)) close();
        return false;
      },
      closed: () => isArchived && reloadTeam().catch(showProblem),
    },
  );
}
