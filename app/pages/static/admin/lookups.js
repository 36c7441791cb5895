// @ts-check
// What several pages have to know.

import { call } from "../base/api.js";
import { t } from "../base/i18n.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { badge } from "../console/panel.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/users">["items"][number]} User */
/** @typedef {{ limit: number, offset: number }} Slice */

const MOST_AT_ONCE = 100; // so does the service

/**
 * Reads a list to its end.
 * @template [T=never] unknown to the compiler unless the parameter of `ask` has its type
 * @param {(slice: Slice) => Promise<{ items: T[], total: number }>} ask
 * @returns {Promise<T[]>}
 */
export async function all(ask) {
  /** @type {T[]} */
  const found = [];
  for (;;) {
    const { items, total } = await ask({ limit: MOST_AT_ONCE, offset: found.length });
    found.push(...items);
    if (items.length === 0 || found.length >= total) return found;
  }
}

/**
 * The policy groups as choices.
 * @returns {Promise<[id: string, name: string][]>}
 */
export async function groupChoices() {
  const groups = await load(() =>
    orSignIn(all((/** @type {Slice} */ query) => call("get", "/admin/policy-groups", { query }))),
  );
  return groups.map(({ id, name }) => [String(id), name]);
}

/** @param {Pick<User, "status" | "is_activated">} user */
export function statusBadge({ status, is_activated: isActivated }) {
  if (status === "disabled") return badge(t("user.status.disabled"), "bad");
  return isActivated
    ? badge(t("user.status.active"), "good")
    : badge(t("user.status.pending"), "warn");
}

/** @param {User} user */
export function nameOf({ username, profile }) {
  return profile.display_name || username;
}
