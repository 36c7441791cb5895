// @ts-check
// All settings: what they are, what they are set to, and by whom.

import { call } from "../base/api.js";
import { byId } from "../base/dom.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/config/schema">[number]} Described */
/** @typedef {Data<"get", "/admin/config">["items"][number]} Stored */
/** @typedef {{ category: string, precedence: number }} Place the highest comes first */
/**
 * @typedef {Described & Stored & Place & { author: string }} Setting `author` is "" for the command
 *   line
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
  /** @type {Record<string, Place>} */
  const places = JSON.parse(String(byId("main").dataset.places));
  const names = await namesOf([...stored.values()].map((one) => one.updated_by));
  return described.flatMap((one) => {
    const value = stored.get(one.key);
    const place = places[one.key] ?? { category: one.category, precedence: 0 };
    return value
      ? [{ ...one, ...value, ...place, author: names.get(value.updated_by ?? 0) ?? "" }]
      : [];
  });
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
