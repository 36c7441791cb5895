// @ts-check
// How an account signs in, and where it is signed in: looked at and taken away.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { ago, day, moment } from "../base/format.js";
import { asSaid, t } from "../base/i18n.js";
import { load, onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { facts, panel } from "../console/panel.js";
import { showOnce } from "../console/secret.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";
import { doer } from "./user_buttons.js";
import { sessionsPanel } from "./user_sessions.js";

/** @typedef {import("./lookups.js").User} User */
/** @typedef {import("../../types").Data<"get", "/admin/users/{id}/credentials">} Credentials */
/** @typedef {{ user: User, path: { id: string }, again: () => Promise<void> }} About */

/**
 * @param {HTMLElement} host
 * @param {User} user
 * @param {(user: User) => void} changed
 * @returns what reads it again
 */
export async function showSecurity(host, user, changed) {
  const path = { id: String(user.id) };
  const read = () =>
    load(() =>
      orSignIn(
        Promise.all([
          call("get", "/admin/users/{id}/credentials", { path }),
          call("get", "/admin/users/{id}/sessions", { path }),
        ]),
      ),
    );
  const again = async () => {
    const [credentials, sessions] = await read();
    const about = { user, path, again };
    replace(host, credentialsPanel(about, credentials, changed), sessionsPanel(about, sessions));
  };
  await again();
  return again;
}

/**
 * @param {About} about
 * @param {Credentials} credentials
 * @param {(user: User) => void} changed
 */
function credentialsPanel(about, credentials, changed) {
  const {
    has_password: hasPassword,
    factors,
    passkeys,
    external_links: links,
    failed_attempts: failed,
    locked_until: locked,
  } = credentials;
  const { user, path, again } = about;
  const renew = () => readAgain(about, changed);
  const buttons = [
    doer("user.reset_mail", () => call("post", "/admin/users/{id}/password-reset-mail", { path }), {
      done: "user.reset_mail_sent",
    }),
    actButton(t("user.set_password"), { class: "secondary small" }, async () =>
      (await onDemand(() => import("./user_dialogs.js"))).askForPassword(user, renew),
    ),
    doer("user.generate", () => call("put", "/admin/users/{id}/password", { path, body: {} }), {
      ask: "user.generate_text",
      then: (answer) => showGenerated(about, answer, changed),
    }),
    factors.length > 0 &&
      doer("user.reset_mfa", () => call("delete", "/admin/users/{id}/mfa", { path }), {
        ask: "user.reset_mfa_text",
        done: "user.reset_mfa_done",
        then: again,
      }),
    Boolean(failed || locked) &&
      doer("user.unlock", () => call("post", "/admin/users/{id}/unlock", { path }), {
        done: "user.unlocked",
        then: again,
      }),
  ];
  return panel(
    "security",
    t("security.title"),
    { lead: locked ? t("user.locked", { time: moment(locked) }) : "" },
    facts([
      [t("user.password"), hasPassword ? t("user.is_set") : t("none")],
      [
        t("user.second_factor"),
        factors.length > 0 ? factors.map(({ name }) => name).join(", ") : t("none"),
      ],
      [
        t("user.last_sign_in"),
        credentials.last_sign_in_at ? ago(credentials.last_sign_in_at) : t("never"),
      ],
      [t("user.failed"), failed ? String(failed) : ""],
    ]),
    el("div", { class: "form-actions" }, ...buttons),
    passkeys.length > 0 && el("h3", {}, t("user.passkeys")),
    passkeys.length > 0 && passkeyTable(about, passkeys),
    links.length > 0 && el("h3", {}, t("user.links")),
    links.length > 0 && linkTable(about, links),
  );
}

/**
 * @param {About} about
 * @param {{ generated_password?: string }} answer
 * @param {(user: User) => void} changed
 */
async function showGenerated(about, { generated_password: password }, changed) {
  if (password) {
    const { username } = about.user;
    const text = t("new_user.generated", { name: username });
    await showOnce({
      title: t("new_user.password"),
      text,
      lines: [password],
      file: `password-${username}.txt`,
    });
  }
  await readAgain(about, changed);
}

/**
 * @param {About} about
 * @param {(user: User) => void} changed
 */
async function readAgain({ path, again }, changed) {
  changed(await orSignIn(call("get", "/admin/users/{id}", { path })));
  await again();
}

/**
 * Removes a way to sign in; the last one only after a second question.
 * @param {About} about
 * @param {string} title
 * @param {(force: boolean) => Promise<unknown>} work
 */
async function remove({ again }, title, work) {
  if (!(await confirmed({ title, text: t("user.remove_text"), verb: t("remove") }))) return;
  const attempt = (/** @type {boolean} */ force) =>
    asOwner(t("user.why"), async () => (await orSignIn(work(force))) ?? true);
  try {
    if ((await attempt(false)) === null) return;
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "conflict") throw error;
    const isForced = await confirmed({
      title,
      text: el("p", {}, asSaid(error.msg), " ", t("user.last_way")),
      verb: t("user.remove_anyway"),
    });
    if (!isForced || (await attempt(true)) === null) return;
  }
  toast(t("user.removed"));
  await again();
}

/**
 * @param {About} about
 * @param {Credentials["passkeys"]} passkeys
 */
function passkeyTable(about, passkeys) {
  return table(
    t("user.passkeys"),
    [
      { label: t("user.name"), cell: ({ name }) => name },
      { label: t("users.created"), cell: ({ created_at: at }) => day(at) },
      { label: t("user.used"), cell: ({ last_used_at: at }) => (at ? ago(at) : t("never")) },
      {
        label: t("remove"),
        kind: "actions",
        cell: ({ id, name }) =>
          removeButton(name, () =>
            remove(about, t("user.remove_title", { name }), (force) =>
              call("delete", "/admin/users/{id}/passkeys/{passkey_id}", {
                path: { ...about.path, passkey_id: String(id) },
                query: { force },
              }),
            ),
          ),
      },
    ],
    passkeys,
  );
}

/**
 * @param {About} about
 * @param {Credentials["external_links"]} links
 */
function linkTable(about, links) {
  return table(
    t("user.links"),
    [
      { label: t("user.name"), cell: (link) => link.provider_display_name },
      {
        label: t("user.account_there"),
        cell: (link) => link.email_snapshot || link.display_name_snapshot || link.subject,
      },
      { label: t("user.used"), cell: ({ last_login_at: at }) => (at ? ago(at) : t("never")) },
      {
        label: t("remove"),
        kind: "actions",
        cell: ({ id, provider_display_name: name }) =>
          removeButton(name, () =>
            remove(about, t("user.remove_title", { name }), (force) =>
              call("delete", "/admin/users/{id}/external-links/{link_id}", {
                path: { ...about.path, link_id: String(id) },
                query: { force },
              }),
            ),
          ),
      },
    ],
    links,
  );
}

/**
 * @param {string} name
 * @param {() => Promise<unknown>} work
 */
function removeButton(name, work) {
  return actButton(t("remove"), { class: "link", "aria-label": `${t("remove")}: ${name}` }, work);
}
