// @ts-check
// How an account signs in, and where it is signed in: looked at and taken away.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { load, onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { deviceWords } from "../console/agents.js";
import { actButton } from "../console/fields.js";
import { badge, facts, panel } from "../console/panel.js";
import { showOnce } from "../console/secret.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";
import { linkTable, passkeyTable } from "./user_ways.js";

/** @import { Data } from "../../types" */
/** @typedef {import("./lookups.js").User} User */
/** @typedef {Data<"get", "/admin/users/{id}/credentials">} Credentials */
/** @typedef {Data<"get", "/admin/users/{id}/sessions">} Sessions */
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
 * A button that may ask first, and confirms who is there if it has to.
 * @template T
 * @param {string} name key of its words
 * @param {() => Promise<T>} work
 * @param {{ ask?: string, done?: string, then?: (answer: T) => unknown, label?: string }} how
 */
export function doer(name, work, { ask, done, then, label }) {
  return actButton(t(name), { class: "secondary small", "aria-label": label }, async () => {
    if (ask && !(await confirmed({ title: t(name), text: t(ask), verb: t(name) }))) return;
    const answer = await asOwner(t("user.why"), async () => (await orSignIn(work())) ?? true);
    if (answer === null) return;
    if (done) toast(t(done));
    await then?.(/** @type {T} */ (answer));
  });
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
 * @param {About} about
 * @param {Sessions} sessions
 */
function sessionsPanel(about, sessions) {
  const { path, again } = about;
  const all = doer(
    "user.end_all",
    () => call("post", "/admin/users/{id}/sessions/revoke", { path }),
    { ask: "user.end_all_text", done: "user.sessions_ended", then: again },
  );
  return panel(
    "sessions",
    t("user.sessions"),
    { actions: sessions.length > 0 ? [all] : [] },
    sessions.length === 0
      ? el("p", { class: "hint" }, t("user.no_sessions"))
      : table(
          t("user.sessions"),
          [
            {
              label: t("user.device"),
              cell: ({ user_agent: agent, ip_address: address }) => [
                el("span", { title: agent ?? "" }, deviceWords(agent)),
                address && el("span", { class: "hint mono" }, address),
              ],
            },
            {
              label: t("user.seen"),
              cell: ({ last_seen_at: at }) =>
                el("time", { datetime: at, title: moment(at) }, ago(at)),
            },
            {
              label: t("user.end"),
              kind: "actions",
              cell: ({ id, is_current: isCurrent, user_agent: agent }) =>
                isCurrent ? badge(t("user.here")) : removeSession(about, id, deviceWords(agent)),
            },
          ],
          sessions,
        ),
  );
}

/**
 * @param {About} about
 * @param {string} id
 * @param {string} device
 */
function removeSession({ path, again }, id, device) {
  return actButton(
    t("user.end"),
    { class: "link", "aria-label": `${t("user.end")}: ${device}` },
    async () => {
      await orSignIn(
        call("delete", "/admin/users/{id}/sessions/{session_id}", {
          path: { ...path, session_id: id },
        }),
      );
      toast(t("user.session_ended"));
      await again();
    },
  );
}
