// @ts-check
// One account: who it is, what it may do, how it signs in, what happened to it.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { day } from "../base/format.js";
import { t } from "../base/i18n.js";
import { entitle, idOfAddress, leaveFor } from "../base/page.js";
import { showProblem } from "../base/problem.js";
import { load, onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { avatar } from "../console/avatar.js";
import { actButton } from "../console/fields.js";
import { list } from "../console/list.js";
import { open } from "../console/open.js";
import { empty, facts, panel } from "../console/panel.js";
import { eventColumns } from "./events.js";
import { groupChoices, nameOf, statusBadge } from "./lookups.js";
import { showAccess } from "./user_access.js";
import { showSecurity } from "./user_security.js";

/** @typedef {import("./lookups.js").User} User */

const id = idOfAddress();

open(async (me) => {
  let found;
  try {
    found = await load(() =>
      orSignIn(Promise.all([call("get", "/admin/users/{id}", { path: { id } }), groupChoices()])),
    );
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== "not_found") throw error;
    replace(
      byId("content"),
      empty(t("user.none"), null, el("a", { href: "/admin/users" }, t("user.back"))),
    );
    return;
  }
  const [user, groups] = found;
  const hosts = {
    head: el("div"),
    access: el("div"),
    security: el("div"),
    tokens: el("div"),
    events: el("div"),
  };
  const isOwn = user.id === me.id;
  const reload = showEvents(hosts.events);
  /** @type {(() => Promise<void>) | undefined} */
  let readSecurity;
  /** @type {((now: User) => Promise<void>) | undefined} */
  let readTokens;
  const changed = (/** @type {User} */ now) => {
    showHead(hosts.head, now, isOwn, changed);
    showChanged(now);
    reload();
    readSecurity?.().catch(showProblem); // sessions end with the account's access
    readTokens?.(now).catch(showProblem); // and so do tokens
  };
  const showChanged = showAccess(hosts.access, user, groups, isOwn, changed);
  changed(user);
  replace(
    byId("content"),
    hosts.head,
    hosts.access,
    hosts.security,
    isOwn ? null : hosts.tokens,
    hosts.events,
    isOwn ? null : deletionPanel(user),
  );
  if (isOwn) showOwn(hosts.security);
  else {
    readSecurity = await showSecurity(hosts.security, user, changed);
    const { showTokens } = await onDemand(() => import("./user_tokens.js"));
    readTokens = await showTokens(hosts.tokens, user);
  }
});

/**
 * @param {HTMLElement} host
 * @param {User} user
 * @param {boolean} isOwn
 * @param {(user: User) => void} changed
 */
function showHead(host, user, isOwn, changed) {
  const name = nameOf(user);
  entitle(name, user.email);
  replace(byId("page-actions"), statusBadge(user));
  replace(
    host,
    panel(
      "who",
      t("user.who"),
      {
        actions: isOwn
          ? []
          : [
              actButton(t("user.change_email"), { class: "secondary small" }, async () =>
                (await onDemand(() => import("./user_dialogs.js"))).askForEmail(user, changed),
              ),
            ],
      },
      el(
        "div",
        { class: "who-line" },
        avatar(name, user.profile.avatar.url_512, "large"),
        facts([
          [t("user.number"), String(user.id)],
          [t("profile.username"), user.username],
          [t("users.email"), user.email],
          [t("users.role"), t(`role.${user.role}`)],
          [t("users.created"), day(user.created_at)],
          [t("user.pending_email"), user.pending_email],
        ]),
      ),
      isOwn && el("p", { class: "hint" }, t("user.own")),
    ),
  );
}

/** @param {HTMLElement} host */
function showOwn(host) {
  replace(
    host,
    panel(
      "security",
      t("security.title"),
      { lead: t("user.own_security") },
      el(
        "p",
        {},
        el("a", { class: "button secondary", href: "/settings/security" }, t("user.to_own")),
      ),
    ),
  );
}

/** @param {HTMLElement} host */
function showEvents(host) {
  const events = el("div", { class: "list" });
  replace(
    host,
    panel(
      "events",
      t("user.events"),
      { actions: [el("a", { href: `/admin/audit?user_id=${id}` }, t("audit.title"))] },
      events,
    ),
  );
  return list({
    host: events,
    isAside: true,
    label: t("user.events"),
    ask: (query, signal) =>
      call("get", "/admin/users/{id}/audit-logs", {
        path: { id },
        query: { ...query, limit: 10 },
        signal,
      }),
    columns: eventColumns(),
  });
}

/** @param {User} user */
function deletionPanel({ username }) {
  const remove = actButton(t("user.delete"), { class: "danger" }, async () => {
    const isWanted = await confirmed({
      title: t("user.delete_title", { name: username }),
      text: t("user.delete_text"),
      verb: t("user.delete"),
      typed: username,
    });
    if (!isWanted) return;
    const isDone = await asOwner(t("user.why"), async () => {
      await orSignIn(
        call("delete", "/admin/users/{id}", { path: { id }, query: { confirm: username } }),
      );
      return true;
    });
    if (isDone) await leaveFor("/admin/users");
  });
  return panel(
    "deletion",
    t("user.delete"),
    { lead: t("user.delete_text") },
    el("div", { class: "form-actions" }, remove),
  );
}
