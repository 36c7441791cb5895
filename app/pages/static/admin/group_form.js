// @ts-check
// A dialog for a policy group: its policies are put in order by buttons.

import { call } from "../base/api.js";
import { formDialog } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { say } from "../base/live.js";
import { orSignIn } from "../base/session.js";
import { button, field, select, textInput } from "../console/fields.js";

/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./groups.js").Policies} Policies */
/** @typedef {{ policy_id: number, min_file_size: number, max_file_size: number }} Item */

const MEGABYTE = 1e6;

/**
 * @param {Group | null} group null for a new one
 * @param {Policies} policies
 * @param {() => Promise<void>} done
 */
export function askForGroup(group, policies, done) {
  /** @type {Item[]} */
  const items = [...(group?.items ?? [])].sort((one, other) => one.priority - other.priority);
  const name = textInput("name", { id: "group-name", value: group?.name ?? "", required: true, maxlength: 128 });
  const lines = el("ol", { class: "policies" });
  const adder = select("policy", [], { id: "group-policy" });
  const draw = () => {
    replace(lines, ...items.map((_, index) => itemLine(items, index, policies, draw)));
    // A policy can be in a group once.
    const free = policies.filter(({ id }) => items.every((item) => item.policy_id !== id));
    replace(adder, ...free.map(({ id, name: title }) => el("option", { value: id }, title)));
    adding.hidden = free.length === 0;
  };
  const add = button(t("group_form.add"), {
    click: () => {
      items.push({ policy_id: Number(adder.value), min_file_size: 0, max_file_size: 0 });
      draw();
      if (adding.hidden) /** @type {HTMLElement | null} */ (lines.querySelector("li:last-child input"))?.focus();
    },
  });
  const adding = field(t("group_form.policy"), adder, { beside: add });
  draw();
  const close = formDialog(group ? group.name : t("groups.new"), t("save"), [
    field(t("teams.name"), name),
    field(t("teams.description"), textInput("description", { id: "group-description", value: group?.description ?? "", maxlength: 1024 })),
    el("h3", {}, t("group_form.policies")),
    el("p", { class: "hint" }, t("group_form.hint")),
    lines,
    adding,
  ], {
    busy: t("saving"),
    async submit({ name: wanted = "", description = "" }) {
      const body = { name: wanted.trim(), description: description.trim(), items: items.map((item, index) => ({ policy_id: item.policy_id, priority: index + 1, min_file_size: item.min_file_size, max_file_size: item.max_file_size })) };
      if (group) await orSignIn(call("patch", "/admin/policy-groups/{id}", { path: { id: group.id }, body: { ...body, expected_updated_at: group.updated_at } }));
      else await orSignIn(call("post", "/admin/policy-groups", { body }));
      close();
      await done();
    },
  });
}

/**
 * @param {Item[]} items
 * @param {number} index
 * @param {Policies} policies
 * @param {() => void} draw
 */
function itemLine(items, index, policies, draw) {
  const item = /** @type {Item} */ (items[index]);
  const name = policies.find((one) => one.id === item.policy_id)?.name ?? String(item.policy_id);
  const move = (/** @type {number} */ by) => {
    items.splice(index, 1);
    items.splice(index + by, 0, item);
    draw();
    say(t("group_form.moved", { name, place: index + by + 1 }));
  };
  const step = (/** @type {"up" | "down"} */ mark, /** @type {number} */ by) => {
    const label = `${t(`group_form.${mark}`)}: ${name}`;
    return el("button", { type: "button", class: "quiet", "aria-label": label, disabled: index + by < 0 || index + by >= items.length, click: () => move(by) }, icon(mark));
  };
  const limit = (/** @type {"min_file_size" | "max_file_size"} */ key) => {
    const input = textInput(`${key}-${index}`, { type: "number", min: 0, step: "any", value: item[key] ? item[key] / MEGABYTE : "", "aria-label": `${t(`group_form.${key}`)}: ${name}`, placeholder: t(`group_form.${key}`) });
    input.addEventListener("input", () => (item[key] = Math.round(Number(input.value) * MEGABYTE)));
    return input;
  };
  const remove = el("button", { type: "button", class: "quiet", "aria-label": `${t("remove")}: ${name}`, click: () => {
    items.splice(index, 1);
    draw();
  } }, icon("close"));
  return el("li", {}, el("div", { class: "policy-line" }, el("span", {}, name), limit("min_file_size"), limit("max_file_size"), step("up", -1), step("down", 1), remove));
}
