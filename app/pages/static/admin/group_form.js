// @ts-check
// A dialog for a policy group: its policies are put in order by buttons.

import { call } from "../base/api.js";
import { formDialog } from "../base/dialog.js";
import { el, replace, say } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { showProblemIn } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { button, select, warnOfLoss } from "../console/fields.js";
import { carryOver, isOutdated } from "../console/meanwhile.js";

/** @typedef {import("./groups.js").Group} Group */
/** @typedef {import("./groups.js").Policies} Policies */
/** @typedef {{ policy_id: number, min_file_size: number, max_file_size: number }} Item */
/**
 * What is filled in and not saved, the items that were there, and why it is not.
 * @typedef {{ form: HTMLFormElement, items: Item[], before: Item[], refusal: unknown }} Draft
 */

const MEGABYTE = 1e6;

/**
 * @param {Group | null} group null for a new one
 * @param {Policies} policies
 * @param {object} how
 * @param {() => Promise<void>} how.done
 * @param {(draft: Draft, ready: () => void) => Promise<void>} how.again asks anew, with the group
 *   as it is now
 * @param {() => Promise<void>} how.outdated shows the groups as they are now
 * @param {Draft} [how.draft]
 */
export function askForGroup(group, policies, { done, again, outdated, draft }) {
  const before = itemsOf(group);
  const isChanged = draft && !isSame(draft.items, draft.before);
  const isClash = isChanged && !isSame(before, draft.before) && !isSame(before, draft.items);
  const items = isChanged ? draft.items : itemsOf(group);
  let isStale = false;
  const name = textInput("name", {
    id: "group-name",
    value: group?.name ?? "",
    required: true,
    maxlength: 128,
  });
  const { lines, adding } = itemFields(items, policies);
  const close = formDialog(
    group ? group.name : t("groups.new"),
    t("save"),
    [
      field(t("teams.name"), name),
      field(
        t("teams.description"),
        textInput("description", {
          id: "group-description",
          value: group?.description ?? "",
          maxlength: 1024,
        }),
      ),
      el("h3", {}, t("group_form.policies")),
      el("p", { class: "hint" }, t("group_form.hint")),
      lines,
      isClash &&
        el(
          "p",
          { class: "field-error" },
          t("group_form.theirs", {
            policies:
              before.map((item) => nameOf(item, policies)).join(", ") || t("settings.empty"),
          }),
        ),
      adding,
    ],
    {
      busy: t("saving"),
      async submit({ name: wanted = "", description = "" }) {
        const body = {
          name: wanted.trim(),
          description: description.trim(),
          items: items.map(({ policy_id, min_file_size, max_file_size }, index) => ({
            policy_id,
            priority: index + 1,
            min_file_size,
            max_file_size,
          })),
        };
        try {
          await orSignIn(save(group, body));
        } catch (refusal) {
          if (!group || !isOutdated(refusal)) throw refusal;
          return again({ form: formOf(name), items, before, refusal }, close);
        }
        close();
        await done();
      },
      taken({ code }) {
        isStale ||= code === "not_found";
        return false;
      },
      closed: () => (isStale || draft) && outdated(),
    },
  );
  warnOfLoss(formOf(name));
  if (isChanged) formOf(name).dispatchEvent(new Event("input")); // it is not saved
  if (!draft) return;
  carryOver(draft.form, formOf(name));
  showProblemIn(/** @type {Element} */ (name.closest("dialog")), draft.refusal, {
    conflict: "meanwhile.kept",
  });
}

/**
 * @param {Group | null} group
 * @param {{ name: string, description: string, items: (Item & { priority: number })[] }} body
 */
function save(group, body) {
  if (!group) return call("post", "/admin/policy-groups", { body });
  return call("patch", "/admin/policy-groups/{id}", {
    path: { id: group.id },
    body: { ...body, expected_updated_at: group.updated_at },
  });
}

/**
 * The policies of a group, and what adds another.
 * @param {Item[]} items is changed
 * @param {Policies} policies
 */
function itemFields(items, policies) {
  const lines = el("ol", { class: "policies" });
  const adder = select("", [], { id: "group-policy" });
  const draw = () => {
    replace(lines, ...items.map((_, index) => itemLine(items, index, policies, draw)));
    // A policy can be in a group once.
    const free = policies.filter(({ id }) => items.every((item) => item.policy_id !== id));
    replace(adder, ...free.map(({ id, name: title }) => el("option", { value: id }, title)));
    adding.hidden = free.length === 0;
    adder.form?.dispatchEvent(new Event("input")); // it is not saved
  };
  const add = button(t("group_form.add"), {
    click: () => {
      items.push({ policy_id: Number(adder.value), min_file_size: 0, max_file_size: 0 });
      draw();
      if (adding.hidden)
        /** @type {HTMLElement | null} */ (lines.querySelector("li:last-child input"))?.focus();
    },
  });
  const adding = field(t("group_form.policy"), adder, { beside: add });
  draw();
  return { lines, adding };
}

/** @param {HTMLInputElement} control */
function formOf(control) {
  return /** @type {HTMLFormElement} */ (control.form);
}

/**
 * @param {Group | null} group
 * @returns {Item[]} copies, in their order
 */
function itemsOf(group) {
  return [...(group?.items ?? [])]
    .sort((one, other) => one.priority - other.priority)
    .map((item) => ({ ...item }));
}

/**
 * @param {Item[]} some
 * @param {Item[]} others
 */
function isSame(some, others) {
  const [one, other] = [some, others].map((items) =>
    JSON.stringify(items.map((item) => [item.policy_id, item.min_file_size, item.max_file_size])),
  );
  return one === other;
}

/**
 * @param {Item} item
 * @param {Policies} policies
 */
function nameOf(item, policies) {
  return policies.find((one) => one.id === item.policy_id)?.name ?? String(item.policy_id);
}

/**
 * @param {Item} item is changed
 * @param {"min_file_size" | "max_file_size"} key
 * @param {number} index
 * @param {string} name
 */
function limitInput(item, key, index, name) {
  const input = textInput(`${key}-${index}`, {
    type: "number",
    min: 0,
    step: "any",
    value: item[key] ? item[key] / MEGABYTE : "",
    "aria-label": `${t(`group_form.${key}`)}: ${name}`,
    placeholder: t(`group_form.${key}`),
  });
  input.addEventListener("input", () => (item[key] = Math.round(Number(input.value) * MEGABYTE)));
  return input;
}

/**
 * @param {Item[]} items
 * @param {number} index
 * @param {Policies} policies
 * @param {() => void} draw
 */
function itemLine(items, index, policies, draw) {
  const item = /** @type {Item} */ (items[index]);
  const name = nameOf(item, policies);
  const move = (/** @type {number} */ by) => {
    items.splice(index, 1);
    items.splice(index + by, 0, item);
    draw();
    say(t("group_form.moved", { name, place: index + by + 1 }));
  };
  const step = (/** @type {"up" | "down"} */ mark, /** @type {number} */ by) => {
    const label = `${t(`group_form.${mark}`)}: ${name}`;
    return el(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": label,
        disabled: index + by < 0 || index + by >= items.length,
        click: () => move(by),
      },
      icon(mark),
    );
  };
  const remove = el(
    "button",
    {
      type: "button",
      class: "quiet",
      "aria-label": `${t("remove")}: ${name}`,
      click: () => {
        items.splice(index, 1);
        draw();
      },
    },
    icon("close"),
  );
  return el(
    "li",
    {},
    el(
      "div",
      { class: "policy-line" },
      el("span", {}, name),
      limitInput(item, "min_file_size", index, name),
      limitInput(item, "max_file_size", index, name),
      step("up", -1),
      step("down", 1),
      remove,
    ),
  );
}
