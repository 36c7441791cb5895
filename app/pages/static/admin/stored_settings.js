// @ts-check
// All settings but the texts of mails: what they are, what they are set to, and by whom.

import { call } from "../base/api.js";
import { placed } from "./setting_places.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/config/schema">[number]} Described */
/** @typedef {Data<"get", "/admin/config">["items"][number]} Stored */
/**
 * @typedef {Described & Stored & { author: string, tab: string }} Setting `author` is "" for a
 *   command and for who is not there any more
 */

const PAGE = 100;

/** @returns {Promise<Setting[]>} */
export async function readAll() {
  const described = await call("get", "/admin/config/schema");
  /** @type {Map<string, Stored>} */
  const stored = new Map();
  for (let offset = 0; offset < described.length; offset += PAGE) {
    const { items } = await call("get", "/admin/config", { query: { limit: PAGE, offset } });
    for (const one of items) stored.set(one.key, one);
  }
  const names = await namesOf([...stored.values()].map((one) => one.updated_by));
  const known = described.flatMap((one) => {
    const value = stored.get(one.key);
    return value ? [{ ...one, ...value, author: names.get(value.updated_by ?? 0) ?? "" }] : [];
  });
  return placed(known);
}

/**
 * The names of those who are still there.
 * @param {Iterable<number | null | undefined>} ids
 */
async function namesOf(ids) {
  const asked = [...new Set(ids)].filter((id) => id != null);
  const users = await Promise.all(
    asked.map((id) =>
      call("get", "/admin/users/{id}", { path: { id: String(id) } }).catch(() => null),
    ),
  );
  return new Map(users.flatMap((user) => (user ? [[user.id, user.username]] : [])));
}
