// @ts-check
// What an account may do; each control is saved by itself.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { size } from "../base/format.js";
import { field, handle, mark } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { checkbox, select, submitLine } from "../console/fields.js";
import { panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { quotaField } from "./quota.js";

/** @import { Body } from "../../types" */
/** @typedef {import("./lookups.js").User} User */
/** @typedef {Body<"patch", "/admin/users/{id}">} Change */
/** @typedef {(user: User) => void} Changed */

/**
 * Returns what shows the account when it has changed: the controls stay the same, since a key may
 * be held down on one while another is saved.
 * @param {HTMLElement} host
 * @param {User} user
 * @param {[string, string][]} groups
 * @param {boolean} isOwn role, status and forced change of one's own account are not for this page
 * @param {Changed} changed
 * @returns {Changed}
 */
export function showAccess(host, user, groups, isOwn, changed) {
  let newest = user;
  let waiting = 0; // changes that are not saved yet: one after the other
  /** @type {Promise<unknown>} */
  let saving = Promise.resolve();
  const save = (/** @type {Change} */ change) => {
    waiting += 1;
    const next = saving.then(() => saved(newest, change, changed)).finally(() => (waiting -= 1));
    saving = next;
    return next;
  };
  const role = roleSelect(user, save, () => newest.role);
  const group = select("policy_group_id", groups, { value: String(user.policy_group_id ?? "") });
  group.addEventListener("change", async () => {
    if (!(await save({ policy_group_id: Number(group.value) })))
      group.value = String(newest.policy_group_id ?? "");
  });
  const isEnabled = () => newest.status === "active";
  const enabled = toggle("enabled", t("user.enabled"), t("user.enabled_hint"), isEnabled, (isOn) =>
    save({ status: isOn ? "active" : "disabled" }),
  );
  const mustChange = () => newest.must_change_password;
  const change = toggle(
    "must_change_password",
    t("user.must_change"),
    t("user.must_change_hint"),
    mustChange,
    (isOn) => save({ must_change_password: isOn }),
  );
  const isVerified = () => newest.email_verified;
  const address = toggle(
    "email_verified",
    t("user.verified"),
    t("user.verified_hint"),
    isVerified,
    () => save({ email_verified: true }),
  );
  address.box.hidden = isVerified();
  const quota = el("div", {}, quotaForm(user, save));
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
        !isOwn && enabled.box,
        !isOwn && change.box,
        address.box,
        groups.length > 0 && field(t("users.group"), group),
        quota,
      ),
    ),
  );
  return (now) => {
    const isSameQuota = newest.storage_quota === now.storage_quota; // a limit may be being typed
    newest = now;
    if (!isSameQuota) replace(quota, quotaForm(now, save));
    if (now.email_verified && address.box.contains(document.activeElement)) {
      const next = /** @type {HTMLElement | null | undefined} */ (
        address.box.nextElementSibling?.querySelector("select, input")
      );
      next?.focus();
    }
    address.box.hidden = now.email_verified;
    if (waiting > 1) return; // they show what they are about to be
    role.value = now.role;
    group.value = String(now.policy_group_id ?? "");
    for (const one of [enabled, change, address]) one.show();
  };
}

/**
 * @param {User} user
 * @param {(change: Change) => Promise<boolean>} save
 * @param {() => User["role"]} stored
 */
function roleSelect(user, save, stored) {
  const role = select(
    "role",
    [
      ["user", t("role.user")],
      ["admin", t("role.admin")],
    ],
    { value: user.role },
  );
  role.addEventListener("change", async () => {
    // What is being saved meanwhile sets the control to what was.
    const wanted = /** @type {User["role"]} */ (role.value);
    const isTaken = wanted === "user";
    const text = isTaken ? t("user.role_take_text") : t("user.role_give_text");
    const isWanted = await confirmed({
      title: t("user.role_title", { name: user.username }),
      text,
      verb: t("user.role_verb"),
    });
    if (isWanted) role.value = wanted;
    if (!isWanted || !(await save({ role: wanted }))) role.value = stored();
  });
  return role;
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} hint
 * @param {() => boolean} isOn
 * @param {(isOn: boolean) => Promise<boolean>} save
 */
function toggle(name, label, hint, isOn, save) {
  const box = checkbox(name, label, { checked: isOn(), isSwitch: true, hint });
  const input = /** @type {HTMLInputElement} */ (box.querySelector("input"));
  const show = () => {
    input.checked = isOn();
  };
  input.addEventListener("change", async () => {
    if (!(await save(input.checked))) show();
  });
  return { box, show };
}

/**
 * @param {User} user
 * @param {(change: Change) => Promise<boolean>} save
 */
function quotaForm(user, save) {
  const quota = quotaField(user.storage_quota);
  const used = el(
    "p",
    { class: "hint" },
    t("profile.storage_used_now", { used: size(user.storage_used) }),
  );
  const drawn = el(
    "form",
    { method: "post", novalidate: true },
    quota.box,
    used,
    submitLine(t("user.save_quota")),
  );
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
 * Saves, unless somebody else was first: then what is there now is shown. Returns whether it is
 * saved.
 * @param {User} user
 * @param {Change} change
 * @param {Changed} changed
 * @returns {Promise<boolean>}
 */
async function saved(user, change, changed) {
  const path = { id: String(user.id) };
  const body = { ...change, expected_updated_at: user.updated_at };
  try {
    const now = await asOwner(t("user.why"), () =>
      orSignIn(call("patch", "/admin/users/{id}", { path, body })),
    );
    if (!now) return false;
    changed(now);
    toast(t("saved"));
    return true;
  } catch (error) {
    const now =
      error instanceof Refusal && error.code === "conflict"
        ? await orSignIn(call("get", "/admin/users/{id}", { path })).catch(() => null)
        : null;
    if (now && now.updated_at !== user.updated_at) {
      changed(now);
      showNotice(t("user.changed_meanwhile"), { kind: "warn" });
    } else showProblem(error);
    return false;
  }
}
