// @ts-check
// What an account may do; each control is saved by itself.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { size } from "../base/format.js";
import { handle, mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { checkbox, field, select, submitLine } from "../console/fields.js";
import { panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { quotaField } from "./quota.js";

/** @typedef {import("./lookups.js").User} User */
/** @typedef {(user: User) => void} Changed */

/** The account and its form as they were last seen, and the change under way: one after the other. */
/** @type {User | undefined} */
let newest;
/** @type {HTMLFormElement | undefined} */
let form;
/** @type {Promise<unknown>} */
let saving = Promise.resolve();

/**
 * @param {HTMLElement} host
 * @param {User} user
 * @param {[string, string][]} groups
 * @param {boolean} isOwn role, status and forced change of one's own account are not for this page
 * @param {Changed} changed
 */
export function showAccess(host, user, groups, isOwn, changed) {
  const isSameQuota = newest?.storage_quota === user.storage_quota;
  newest = user;
  const save = (/** @type {Record<string, unknown>} */ change) => {
    const next = saving.then(() => saved(newest ?? user, change, changed));
    saving = next;
    return next;
  };
  const role = select("role", [["user", t("role.user")], ["admin", t("role.admin")]], { value: user.role });
  role.addEventListener("change", async () => {
    const isTaken = role.value === "user";
    const text = isTaken ? t("user.role_take_text") : t("user.role_give_text");
    const isWanted = await confirmed({ title: t("user.role_title", { name: user.username }), text, verb: t("user.role_verb") });
    if (!isWanted || !(await save({ role: role.value }))) role.value = user.role;
  });
  const group = select("policy_group_id", groups, { value: String(user.policy_group_id ?? "") });
  group.addEventListener("change", async () => {
    if (!(await save({ policy_group_id: Number(group.value) }))) group.value = String(user.policy_group_id ?? "");
  });
  if (!form || !isSameQuota) form = quotaForm(user, save); // a limit may be typed while a switch is saved
  replace(
    host,
    panel(
      "access",
      t("user.access"),
      {},
      el(
        "div",
        { class: "choices-column" },
        !isOwn && field(t("users.role"), role),
        !isOwn && toggle("enabled", t("user.enabled"), t("user.enabled_hint"), user.status === "active", (isOn) => save({ status: isOn ? "active" : "disabled" })),
        !isOwn && toggle("must_change_password", t("user.must_change"), t("user.must_change_hint"), user.must_change_password, (isOn) => save({ must_change_password: isOn })),
        !user.email_verified && toggle("email_verified", t("user.verified"), t("user.verified_hint"), false, () => save({ email_verified: true })),
        groups.length > 0 && field(t("users.group"), group),
        form,
      ),
    ),
  );
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} hint
 * @param {boolean} checked
 * @param {(isOn: boolean) => Promise<boolean>} save
 */
function toggle(name, label, hint, checked, save) {
  const box = checkbox(name, label, { checked, isSwitch: true, hint });
  const input = /** @type {HTMLInputElement} */ (box.querySelector("input"));
  input.addEventListener("change", async () => {
    if (!(await save(input.checked))) input.checked = checked;
  });
  return box;
}

/**
 * @param {User} user
 * @param {(change: Record<string, unknown>) => Promise<boolean>} save
 */
function quotaForm(user, save) {
  const quota = quotaField(user.storage_quota);
  const used = el("p", { class: "hint" }, t("profile.storage_used_now", { used: size(user.storage_used) }));
  const drawn = el("form", { method: "post", novalidate: true }, quota.box, used, submitLine(t("user.save_quota")));
  handle(drawn, {
    busy: t("saving"),
    async submit() {
      const bytes = quota.bytes();
      if (bytes === null) return mark(quota.input, t("quota.invalid"));
      await save({ storage_quota: bytes });
    },
  });
  return drawn;
}

/**
 * Saves, unless somebody else was first: then what is there now is shown. Returns whether it is saved.
 * @param {User} user
 * @param {Record<string, unknown>} change
 * @param {Changed} changed
 * @returns {Promise<boolean>}
 */
async function saved(user, change, changed) {
  const path = { id: String(user.id) };
  const body = { ...change, expected_updated_at: user.updated_at };
  try {
    const now = await asOwner(t("user.why"), () => orSignIn(call("patch", "/admin/users/{id}", { path, body })));
    if (!now) return false;
    changed(now);
    toast(t("saved"));
    return true;
  } catch (error) {
    const now = error instanceof Refusal && error.code === "conflict" ? await orSignIn(call("get", "/admin/users/{id}", { path })).catch(() => null) : null;
    if (now && now.updated_at !== user.updated_at) {
      changed(now);
      showNotice(t("user.changed_meanwhile"), { kind: "warn" });
    } else showProblem(error);
    return false;
  }
}
