// @ts-check
// Where an account is signed in: looked at and ended.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { deviceWords } from "../console/agents.js";
import { actButton } from "../console/fields.js";
import { badge, panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";
import { doer } from "./user_buttons.js";

/** @typedef {import("./user_security.js").About} About */
/** @typedef {import("../../types").Data<"get", "/admin/users/{id}/sessions">} Sessions */

/**
 * @param {About} about
 * @param {Sessions} sessions
 */
export function sessionsPanel(about, sessions) {
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
