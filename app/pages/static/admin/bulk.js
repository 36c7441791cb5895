// @ts-check
// One change to all accounts that are selected.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed, openDialog } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { act } from "../base/form.js";
import { count, countOrAbout } from "../base/format.js";
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
/**
 * Done to a page of accounts without being asked again: it is easily taken back.
 * @type {Set<Action>}
 */
const HARMLESS = new Set(["enable", "assign_group"]);

/** As many are changed by one request, and chosen at all. */
const AT_ONCE = 200;
const MOST_CHOSEN = 10_000;
const PAGE = 100;
/** @type {Found} */
const NOTHING = { items: [], total: 0, total_is_exact: true };

/** @import { Body } from "../../types" */
/** @typedef {import("./lookups.js").User} User */
/** @typedef {import("../console/list.js").Query} Query */
/** @typedef {{ items: User[], total: number, total_is_exact: boolean }} Found */

/**
 * @param {Set<number>} chosen
 * @param {[string, string][]} groups
 * @param {{ me: number, host: HTMLElement, reload: () => unknown }} page `host` has the list
 */
export function bulkBar(chosen, groups, { me, host, reload }) {
  const words = el("strong", { "aria-live": "polite" });
  const more = button("", { class: "link" });
  const none = button(t("bulk.none"), { class: "link" });
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
  /** @type {Map<number, string>} */
  const names = new Map();
  /** What the list shows. */
  let found = NOTHING;
  /** @type {Query} */
  let query = {};
  const again = async () => {
    await reload();
    if (!node.hidden) return;
    // The focus was in what is not shown any more.
    /** @type {HTMLElement | null} */ (document.querySelector("th.select input"))?.focus();
  };
  actions.addEventListener("change", () => (group.hidden = actions.value !== "assign_group"));
  go.addEventListener("click", () =>
    act(go, t("one_moment"), () => {
      // One's own account comes last: its sessions may be what ends.
      const ids = [...chosen].sort((one, other) => Number(one === me) - Number(other === me));
      const job = { action: /** @type {Action} */ (actions.value), ids, group: group.value };
      return run(job, names, progress, again);
    }),
  );
  const progress = el("progress", { "aria-label": t("bulk.progress"), hidden: true });
  const node = el(
    "div",
    { class: "bulk card", role: "group", "aria-label": t("bulk.title"), hidden: true },
    el("div", { class: "bulk-words" }, words, more, none),
    actions,
    group,
    go,
    progress,
  );
  const update = () => {
    const { items, total, total_is_exact: isExact } = found;
    node.hidden = chosen.size === 0;
    words.textContent = t("list.selected", { count: chosen.size });
    more.hidden = items.length === 0 || chosen.size !== items.length || total <= items.length;
    more.textContent =
      total > MOST_CHOSEN
        ? t("bulk.select_first", { most: count(MOST_CHOSEN) })
        : t("bulk.select_all", { total: countOrAbout(total, isExact) });
  };
  more.addEventListener("click", () =>
    act(more, t("one_moment"), async () => {
      const shown = found;
      // What it would change is not known yet.
      go.disabled = host.inert = true;
      const users = await matching(query, progress, () => shown === found).finally(
        () => (go.disabled = host.inert = false),
      );
      // One's own account is changed only if it was chosen by hand.
      for (const { id, username } of users.filter((one) => one.id !== me)) {
        chosen.add(id);
        names.set(id, username);
      }
      update();
      go.focus();
    }),
  );
  none.addEventListener("click", () => {
    chosen.clear();
    again();
  });
  /** Begins anew, with nothing selected of what the list shows now, or will. */
  const begin = (/** @type {Query} */ asked, answer = NOTHING) => {
    [query, found] = [asked, answer];
    chosen.clear();
    update();
    names.clear();
    for (const { id, username } of answer.items) names.set(id, username);
  };
  return { node, update, begin };
}

/**
 * Reads all accounts that match, up to the most that can be chosen.
 * @param {Query} query
 * @param {HTMLProgressElement} progress
 * @param {() => boolean} isWanted whether the list still shows them
 */
async function matching(query, progress, isWanted) {
  /** @type {User[]} */
  const users = [];
  progress.hidden = false;
  try {
    for (let isMore = true; isMore && isWanted();) {
      const slice = { ...query, limit: PAGE, offset: users.length };
      const { items, total } = await orSignIn(call("get", "/admin/users", { query: slice }));
      users.push(...items);
      progress.max = Math.min(total, MOST_CHOSEN);
      progress.value = users.length;
      isMore = items.length > 0 && users.length < progress.max;
    }
  } finally {
    progress.hidden = true;
  }
  return isWanted() ? users.slice(0, MOST_CHOSEN) : [];
}

/**
 * @param {{ action: Action, ids: number[], group: string }} job
 * @param {Map<number, string>} names
 * @param {HTMLProgressElement} progress
 * @param {() => unknown} reload
 */
async function run({ action, ids, group }, names, progress, reload) {
  const verb = t(`bulk.${action}`);
  const title = t("bulk.confirm", { count: ids.length });
  if (
    (!HARMLESS.has(action) || ids.length > PAGE) &&
    !(await confirmed({
      title: `${verb}: ${title}`,
      text: t(`bulk.${action}.text`),
      verb,
      typed: action === "delete" ? String(ids.length) : "",
    }))
  )
    return;
  const known = new Map(names); // the list forgets them once it is loaded again
  const result = await changed(ids, progress, (part) =>
    action === "assign_group"
      ? { ids: part, action, policy_group_id: Number(group) }
      : { ids: part, action },
  );
  if (!result) return;
  await reload();
  const isWhole = result.done + result.refused.length === ids.length;
  toast(
    isWhole
      ? t("bulk.done", { count: result.done })
      : t("bulk.partly", { done: count(result.done), total: count(ids.length) }),
  );
  if (result.refused.length > 0) showRefused(result.refused, known);
  if (result.error) throw result.error;
}

/**
 * Changes accounts, as many at once as the service takes; null if nothing was to be done after all.
 * What fails in between ends it, and what was done before is told.
 * @param {number[]} ids
 * @param {HTMLProgressElement} progress
 * @param {(part: number[]) => Body<"post", "/admin/users/bulk">} bodyOf
 */
async function changed(ids, progress, bodyOf) {
  /** @type {{ done: number, refused: { id: number, msg: string }[], error?: unknown }} */
  const result = { done: 0, refused: [] };
  progress.max = ids.length;
  progress.hidden = ids.length <= AT_ONCE;
  try {
    for (let start = 0; start < ids.length; start += AT_ONCE) {
      progress.value = start;
      const body = bodyOf(ids.slice(start, start + AT_ONCE));
      const part = await asOwner(t("bulk.why"), () =>
        orSignIn(call("post", "/admin/users/bulk", { body })),
      );
      if (!part) return start > 0 ? result : null;
      result.done += part.done.length;
      result.refused.push(...part.refused);
    }
  } catch (error) {
    if (result.done + result.refused.length === 0) throw error;
    result.error = error;
  } finally {
    progress.hidden = true;
  }
  return result;
}

/**
 * @param {{ id: number, msg: string }[]} refused
 * @param {Map<number, string>} names
 */
function showRefused(refused, names) {
  const done = el("button", { type: "button", class: "secondary" }, t("dialog.close"));
  const lines = refused.map(({ id, msg }) =>
    el("li", {}, `${names.get(id) ?? t("bulk.account", { id })}: `, asSaid(msg)),
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
