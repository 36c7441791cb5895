// @ts-check
// Policy groups: which storage policies apply, in which order, to whom.

import { call } from "../base/api.js";
import { confirmed, formDialog } from "../base/dialog.js";
import { byId, el } from "../base/dom.js";
import { field } from "../base/form.js";
import { count, size } from "../base/format.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton, select } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { badge, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { askForGroup } from "./group_form.js";
import { all } from "./lookups.js";
import { failedMeanwhile } from "../console/meanwhile.js";

/** @import { Body, Data } from "../../types" */
/** @import { Slice } from "./lookups.js" */
/** @typedef {Data<"get", "/admin/policy-groups/{id}">} Group */
/** @typedef {Data<"get", "/admin/policies">["items"]} Policies */

const PER_PAGE = 20;

/** @type {() => Promise<void>} */
let show;

open(() => {
  show = list({
    host: byId("content"),
    label: t("groups.title"),
    empty: {
      title: t("groups.empty"),
      text: t("groups.empty_text"),
      actions: [actButton(t("groups.new"), {}, () => askFor(null))],
    },
    async ask(query, signal) {
      const found = await call("get", "/admin/policy-groups", {
        query: { ...query, limit: PER_PAGE },
        signal,
      });
      return {
        ...found,
        items: await Promise.all(found.items.map(({ id }) => groupOf(id, signal))),
      };
    },
    drawn: ({ items, total }) => items.map((group) => groupPanel(group, total > 1)),
  });
  const add = actButton(t("groups.new"), { class: "primary", id: "new-group" }, () => askFor(null));
  byId("page-actions").append(add, reloadButton(show));
});

/**
 * @param {number} id
 * @param {AbortSignal} [signal]
 */
function groupOf(id, signal) {
  return call("get", "/admin/policy-groups/{id}", { path: { id }, signal });
}

/**
 * @param {Group | null} group null for a new one
 * @param {import("./group_form.js").Draft} [draft] what is filled in and not saved
 * @param {() => void} [ready] called before the dialog opens
 */
async function askFor(group, draft, ready = () => undefined) {
  const policies = await orSignIn(
    all((/** @type {Slice} */ query) => call("get", "/admin/policies", { query })),
  );
  /** @type {Parameters<typeof askForGroup>[2]["again"]} */
  const again = async (unsaved, close) =>
    askFor(group && (await orSignIn(groupOf(group.id))), unsaved, close);
  if (draft && !draft.form.isConnected) return; // cancelled meanwhile
  ready();
  askForGroup(group, policies, { done: changed, again, outdated: show, draft });
}

async function changed() {
  toast(t("saved"));
  await show();
}

/**
 * @param {Group} group
 * @param {boolean} hasOthers whether there are groups besides
 */
function groupPanel(group, hasOthers) {
  const {
    id,
    name,
    description,
    is_default: isDefault,
    is_enabled: isEnabled,
    items,
    users,
    teams,
  } = group;
  const path = { id: String(id) };
  const patch = (/** @type {Body<"patch", "/admin/policy-groups/{id}">} */ body) =>
    call("patch", "/admin/policy-groups/{id}", {
      path,
      body: { ...body, expected_updated_at: group.updated_at },
    });
  const edit = opener(t("edit"), name, () => askFor(group));
  const buttons = [
    !isDefault &&
      isEnabled &&
      doer(t("groups.make_default"), name, () => patch({ is_default: true })),
    !isDefault &&
      doer(t(isEnabled ? "groups.disable" : "groups.enable"), name, () =>
        patch({ is_enabled: !isEnabled }),
      ),
    hasOthers && users + teams > 0 && opener(t("groups.move"), name, () => askForTarget(group)),
    !isDefault && deleteButton(path, name),
  ];
  const badges = [
    isDefault && badge(t("groups.default"), "good"),
    !isEnabled && badge(t("groups.disabled"), "warn"),
  ];
  const ordered = [...items].sort((one, other) => one.priority - other.priority);
  return panel(
    `group-${id}`,
    name,
    { lead: description, actions: [...badges, edit] },
    ordered.length > 0
      ? el(
          "ol",
          { class: "policies" },
          ...ordered.map((item) =>
            el("li", {}, item.policy.name, el("span", { class: "hint" }, limits(item))),
          ),
        )
      : el("p", { class: "hint" }, t("groups.no_policies")),
    el("p", { class: "hint" }, t("groups.assigned", inWords(users, teams))),
    el("div", { class: "form-actions" }, ...buttons),
  );
}

/**
 * @param {number} users
 * @param {number} teams
 */
function inWords(users, teams) {
  return {
    users: t("groups.accounts", { count: users }),
    teams: t("groups.teams", { count: teams }),
  };
}

/** @param {{ min_file_size: number, max_file_size: number }} item */
function limits({ min_file_size: least, max_file_size: most }) {
  if (!least && !most) return t("groups.any_size");
  return most
    ? t("groups.sizes", { least: size(least), most: size(most) })
    : t("groups.from_size", { least: size(least) });
}

/**
 * A button of a group.
 * @param {string} words
 * @param {string} name
 * @param {() => Promise<unknown>} work
 */
function opener(words, name, work) {
  return actButton(words, { class: "secondary small", "aria-label": `${words}: ${name}` }, work, {
    fail: failed,
  });
}

/**
 * One that changes something.
 * @param {string} words
 * @param {string} name
 * @param {() => Promise<unknown>} work
 */
function doer(words, name, work) {
  return opener(words, name, async () => {
    await orSignIn(work());
    await changed();
  });
}

/**
 * @param {{ id: string }} path
 * @param {string} name
 */
function deleteButton(path, name) {
  return actButton(
    t("delete"),
    { class: "danger-line small", "aria-label": `${t("delete")}: ${name}` },
    async () => {
      if (
        !(await confirmed({
          title: t("groups.delete_title", { name }),
          text: t("groups.delete_text"),
          verb: t("delete"),
        }))
      )
        return;
      await orSignIn(call("delete", "/admin/policy-groups/{id}", { path }));
      await changed();
    },
    { fail: failed },
  );
}

/** @param {unknown} error */
function failed(error) {
  return failedMeanwhile(error, show);
}

/** @param {Group} source */
async function askForTarget(source) {
  const groups = await orSignIn(
    all((/** @type {Slice} */ query) => call("get", "/admin/policy-groups", { query })),
  );
  const others = groups.filter((one) => one.id !== source.id && one.is_enabled);
  const numbers = el("p", { class: "hint", "aria-live": "polite" });
  const target = select(
    "target",
    others.map((one) => [String(one.id), one.name]),
    { id: "target-group" },
  );
  const tell = async () => {
    const wanted = target.value;
    const chosen = wanted && (await groupOf(Number(wanted)).catch(() => null));
    if (target.value === wanted)
      numbers.textContent = chosen
        ? t("groups.counts", {
            from: count(source.users + source.teams),
            to: count(chosen.users + chosen.teams),
          })
        : "";
  };
  target.addEventListener("change", tell);
  tell();
  const close = formDialog(
    t("groups.move"),
    t("groups.move"),
    [
      el("p", { class: "lead" }, t("groups.move_text", { name: source.name })),
      field(t("groups.target"), target),
      numbers,
    ],
    {
      async submit({ target: id }) {
        const moved = await orSignIn(
          call("post", "/admin/policy-groups/{id}/migrate-assignments", {
            path: { id: source.id },
            body: { target_group_id: Number(id) },
          }),
        );
        close();
        await show();
        toast(t("groups.moved", inWords(moved.affected_users, moved.affected_teams)));
      },
      taken(refusal) {
        close();
        failed(refusal);
        return true;
      },
    },
  );
}
