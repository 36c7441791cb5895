// @ts-check
// One change to all accounts that are selected.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed, openDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { act } from "../base/form.js";
import { asSaid, t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { button, select } from "../console/fields.js";
import { toast } from "../console/toast.js";

const ACTIONS = /** @type {const} */ ([
  "disable",
  "enable",
  "require_password_change",
  "revoke_sessions",
  "assign_group",
  "delete",
]);
/** @typedef {typeof ACTIONS[number]} Action */
/** Done without being asked again, since it is as easily taken back. @type {Set<Action>} */
const HARMLESS = new Set(["enable", "assign_group"]);

/**
 * @param {Set<number>} chosen
 * @param {[string, string][]} groups
 * @param {() => unknown} reload
 */
export function bulkBar(chosen, groups, reload) {
  const words = el("strong", { "aria-live": "polite" });
  const actions = select(
    "action",
    ACTIONS.filter((one) => one !== "assign_group" || groups.length > 1).map((one) => [
      one,
      t(`bulk.${one}`),
    ]),
    { "aria-label": t("bulk.action") },
  );
  const group = select("bulk_group", groups, { "aria-label": t("users.group"), hidden: true });
  const go = button(t("bulk.go"), { class: "secondary" });
  actions.addEventListener("change", () => (group.hidden = actions.value !== "assign_group"));
  go.addEventListener("click", () =>
    act(go, t("one_moment"), () =>
      run(/** @type {Action} */ (actions.value), [...chosen], group.value, reload),
    ),
  );
  const node = el(
    "div",
    { class: "bulk card", role: "group", "aria-label": t("bulk.title"), hidden: true },
    words,
    actions,
    group,
    go,
  );
  const update = () => {
    node.hidden = chosen.size === 0;
    words.textContent = t("list.selected", { count: chosen.size });
  };
  return { node, update };
}

/**
 * @param {Action} action
 * @param {number[]} ids
 * @param {string} group
 * @param {() => unknown} reload
 */
async function run(action, ids, group, reload) {
  const verb = t(`bulk.${action}`);
  const title = t("bulk.confirm", { count: ids.length });
  if (
    !HARMLESS.has(action) &&
    !(await confirmed({
      title: `${verb}: ${title}`,
      text: t(`bulk.${action}.text`),
      verb,
      typed: action === "delete" ? String(ids.length) : "",
    }))
  )
    return;
  const body =
    action === "assign_group" ? { ids, action, policy_group_id: Number(group) } : { ids, action };
  const result = await asOwner(t("bulk.why"), () =>
    orSignIn(call("post", "/admin/users/bulk", { body })),
  );
  if (!result) return;
  await reload();
  toast(t("bulk.done", { count: result.done.length }));
  if (result.refused.length > 0) showRefused(result.refused);
}

/** @param {{ id: number, msg: string }[]} refused */
function showRefused(refused) {
  const done = el("button", { type: "button", class: "secondary" }, t("dialog.close"));
  const lines = refused.map(({ id, msg }) =>
    el("li", {}, `${t("bulk.account", { id })}: `, asSaid(msg)),
  );
  const content = el(
    "div",
    { class: "dialog-body" },
    el("ul", {}, ...lines),
    el("div", { class: "dialog-actions" }, done),
  );
  const close = openDialog(t("bulk.refused", { count: refused.length }), [content], {
    focus: done,
  });
  done.addEventListener("click", close);
}
