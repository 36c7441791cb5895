// @ts-check
// Who is in a team, and as what.

import { confirmed, formDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { avatar } from "./avatar.js";
import { actButton, button, select } from "./fields.js";
import { list } from "./list.js";
import { failedMeanwhile, isOutdated } from "./meanwhile.js";
import { badge, panel } from "./panel.js";
import { toast } from "./toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/teams/{id}/members">["items"][number]} Member */
/** @typedef {Member["role"]} Role */
/**
 * What can be done with the members of a team, and by whom.
 * @typedef {object} Access
 * @property {import("./list.js").Listing<Member>["ask"]} ask
 * @property {(id: string, body: { role: Role, expected_updated_at: string }) => Promise<unknown>
 *   } setRole
 * @property {(id: string) => Promise<unknown>} remove
 * @property {(body: { identifier: string, role: Role }) => Promise<unknown>} add
 * @property {readonly Role[]} roles which may be given and taken away; none, and nothing changes
 * @property {number} [me] who leaves the team in another way
 * @property {boolean} [isAdmin] whether accounts and their pictures can be looked at
 * @property {() => Promise<void>} reloadTeam
 */

/** @type {readonly Role[]} */
export const ROLES = ["owner", "admin", "member"];

/**
 * @param {readonly Role[]} roles
 * @returns {[string, string][]}
 */
function choices(roles) {
  return roles.map((one) => [one, t(`team_role.${one}`)]);
}

/** @param {Access} access */
export function membersPanel(access) {
  const host = el("div", { class: "list" });
  const { roles } = access;
  /** @type {() => Promise<void>} */
  let reload = async () => undefined;
  const isOpen = (/** @type {Member} */ { role, user_id: id }) =>
    roles.includes(role) && id !== access.me;
  const add = button(t("team.add"), { click: () => askForMember(access, () => reload()) });
  reload = list({
    host,
    label: t("teams.members"),
    ask: access.ask,
    columns: [
      { label: t("users.name"), cell: (member) => nameCell(access, member) },
      {
        label: t("users.email"),
        cell: ({ email, status }) => [
          el("span", { class: "address" }, email),
          status === "disabled" && badge(t("user.status.disabled"), "bad"),
        ],
      },
      {
        label: t("users.role"),
        cell: (member) =>
          roles.includes(member.role)
            ? roleSelect(access, member, () => reload())
            : t(`team_role.${member.role}`),
      },
      {
        label: t("remove"),
        kind: "actions",
        cell: (member) => isOpen(member) && removeButton(access, member, () => reload()),
      },
    ],
  });
  return panel("members", t("teams.members"), { actions: roles.length > 0 ? [add] : [] }, host);
}

/**
 * @param {Access} access
 * @param {Member} member
 */
function nameCell({ isAdmin = false }, { user }) {
  const name = user.profile.display_name || user.username;
  const shown = [avatar(name, isAdmin ? user.profile.avatar.url_512 : null), el("span", {}, name)];
  return isAdmin
    ? el("a", { class: "person", href: `/admin/users/${user.id}` }, ...shown)
    : el("span", { class: "person" }, ...shown);
}

/**
 * @param {Access} access
 * @param {Member} member
 * @param {() => Promise<void>} reload
 */
function roleSelect({ roles, setRole, reloadTeam }, { user, role, updated_at }, reload) {
  const choice = select(`role-${user.id}`, choices(roles), {
    value: role,
    class: "narrow",
    "aria-label": t("team.role_of", { name: user.username }),
  });
  choice.addEventListener("change", async () => {
    try {
      const wanted = /** @type {Role} */ (choice.value);
      await orSignIn(setRole(String(user.id), { role: wanted, expected_updated_at: updated_at }));
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
 * @param {Access} access
 * @param {Member} member
 * @param {() => Promise<void>} reload
 */
function removeButton({ remove, reloadTeam }, { user }, reload) {
  const name = user.username;
  return actButton(
    t("remove"),
    { class: "link", "aria-label": `${t("remove")}: ${name}` },
    async () => {
      const question = {
        title: t("user.remove_title", { name }),
        text: t("team.remove_text", { name }),
        verb: t("remove"),
      };
      if (!(await confirmed(question))) return;
      await orSignIn(remove(String(user.id)));
      toast(t("user.removed"));
      await reload();
    },
    { fail: (error) => failedMeanwhile(error, reloadTeam) },
  );
}

/**
 * @param {Access} access
 * @param {() => Promise<void>} reload
 */
function askForMember({ add, roles, reloadTeam }, reload) {
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
      field(
        t("users.role"),
        select("role", choices(roles), { id: "member-role", value: "member" }),
      ),
    ],
    {
      fields,
      own: { not_found: "teams.no_account" },
      async submit({ identifier = "", role }) {
        await orSignIn(add({ identifier: identifier.trim(), role: /** @type {Role} */ (role) }));
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
