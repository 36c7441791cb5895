// @ts-check
// Where the account is signed in.

import { call } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn, signOut } from "../base/session.js";
import { deviceWords } from "../console/agents.js";
import { actButton, button } from "../console/fields.js";
import { open } from "../console/open.js";
import { badge } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/sessions">[number]} Session */

const REFRESHED_MS = 60_000;

const endOthers = button(t("sessions.end_others"), { class: "danger-line", hidden: true });

open(async () => {
  endOthers.textContent = t("sessions.end_others");
  endOthers.addEventListener("click", () => act(endOthers, t("one_moment"), removeOthers));
  byId("page-actions").append(endOthers);
  await show();
  const again = () => document.hidden || document.querySelector("dialog") || refresh();
  document.addEventListener("visibilitychange", again);
  setInterval(again, REFRESHED_MS);
});

async function show() {
  draw(await load(() => orSignIn(call("get", "/auth/sessions"))));
}

/** Shows changes made elsewhere, unless somebody is about to use what is there. */
async function refresh() {
  if (byId("content").contains(document.activeElement)) return;
  await orSignIn(call("get", "/auth/sessions")).then(draw, () => undefined);
}

/** @param {Session[]} sessions */
function draw(sessions) {
  endOthers.hidden = sessions.length < 2;
  const ordered = [...sessions].sort(
    (one, other) =>
      Number(other.is_current) - Number(one.is_current) ||
      other.last_seen_at.localeCompare(one.last_seen_at),
  );
  const at = (/** @type {string} */ time) =>
    el("time", { datetime: time, title: moment(time) }, ago(time));
  replace(
    byId("content"),
    table(
      t("sessions.title"),
      [
        { label: t("sessions.device"), cell: deviceCell },
        { label: t("sessions.began"), cell: (one) => at(one.created_at) },
        { label: t("sessions.seen"), cell: (one) => at(one.last_seen_at) },
        { label: t("sessions.expires"), cell: (one) => at(one.expires_at) },
        { label: t("sessions.end"), kind: "actions", cell: endButton },
      ],
      ordered,
    ),
    sessions.length < 2 &&
      el(
        "p",
        { class: "line" },
        el("span", {}, t("sessions.only")),
        el(
          "a",
          { class: "button secondary small", href: "/settings/activity" },
          t("sessions.see_activity"),
        ),
      ),
  );
}

/** @param {Session} session */
function deviceCell({ user_agent: agent, ip_address: address, is_current: isCurrent }) {
  const device = el(
    "span",
    { class: "line" },
    el("span", { title: agent ?? "" }, deviceWords(agent)),
    isCurrent && badge(t("sessions.this"), "good"),
  );
  return [device, address && el("span", { class: "hint mono" }, address)];
}

/** @param {Session} session */
function endButton(session) {
  const device = deviceWords(session.user_agent);
  return actButton(
    session.is_current ? t("sign_out") : t("sessions.end"),
    {
      class: "link",
      "aria-label": session.is_current ? t("sign_out") : t("sessions.end_one", { device }),
    },
    () => (session.is_current ? signOut() : remove(session.id)),
    { fail: failed },
  );
}

/** @param {string} id */
async function remove(id) {
  await orSignIn(call("delete", "/auth/sessions/{session_id}", { path: { session_id: id } }));
  toast(t("sessions.ended"));
  await show();
  byId("title").focus();
}

async function removeOthers() {
  const isWanted = await confirmed({
    title: t("sessions.end_others"),
    text: t("sessions.end_others_text"),
    verb: t("sessions.end_others"),
  });
  if (!isWanted) return;
  const { removed } = await orSignIn(call("delete", "/auth/sessions/others"));
  toast(t("sessions.others_ended", { count: removed }));
  await show();
  byId("title").focus();
}

/**
 * One that has ended meanwhile is what was wanted.
 * @param {unknown} error
 */
async function failed(error) {
  const { code } = /** @type {{ code?: string }} */ (error);
  if (code !== "not_found") showProblem(error);
  else await show().catch(showProblem);
}
