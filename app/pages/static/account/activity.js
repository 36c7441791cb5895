// @ts-check
// What happened to the account, and what to do if it was somebody else.

import { call } from "../base/api.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { field, textInput } from "../base/form.js";
import { ago, moment, momentOf } from "../base/format.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { orSignIn, tellSignedOut } from "../base/session.js";
import { eventSentence, named, ownActions, sentence, unnamed } from "../console/actions.js";
import { deviceWords } from "../console/agents.js";
import { actButton, select } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { panel } from "../console/panel.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/activity">["items"][number]} Item */

open((me) => {
  const host = el("div", { class: "list" });
  const filters = el(
    "form",
    { class: "toolbar", role: "search" },
    field(t("activity.kind"), select("action", [["", t("list.all")], ...ownActions()])),
    field(t("activity.after"), textInput("after", { type: "date" })),
    field(t("activity.before"), textInput("before", { type: "date" })),
  );
  replace(byId("content"), filters, host, doubtPanel());
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("activity.title"),
    filters,
    ask: ({ after, before, ...query }, signal) =>
      call("get", "/auth/activity", {
        query: {
          ...query,
          after: after && momentOf(`${after}T00:00`),
          before: before && endOf(before),
        },
        signal,
      }),
    columns: [
      { label: t("activity.event"), cell: (item) => sentence(sentenceOf(item, me)) },
      {
        label: t("activity.device"),
        cell: ({ user_agent: agent, ip_address: address, details }) => [
          agent &&
            el(
              "span",
              { title: agent },
              details.token_id ? t("activity.program") : deviceWords(agent),
            ),
          address && el("span", { class: "hint mono" }, address),
        ],
      },
      {
        label: t("activity.time"),
        cell: ({ at }) => el("time", { datetime: at, title: ago(at) }, moment(at)),
      },
    ],
  });
  byId("page-actions").append(reloadButton(reload));
});

/**
 * Entries of others are about the account itself, and do not name who that was.
 * @param {Item} item
 * @param {import("../console/open.js").Me} me
 */
function sentenceOf({ action, by, entity_name: name, details }, { username }) {
  const actor = by === "me" ? username : t(`event.${by}`);
  return eventSentence(action, {
    actor: named(actor),
    name: named(String(details.provider_name ?? name ?? (by === "me" ? unnamed() : username))),
    details,
  });
}

/** @param {string} date the last day that is wanted */
function endOf(date) {
  const next = new Date(`${date}T00:00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  return momentOf(`${next.toISOString().slice(0, 10)}T00:00`);
}

function doubtPanel() {
  const lock = actButton(t("activity.lock"), { class: "danger-line" }, lockDown);
  return panel(
    "doubt",
    t("activity.doubt"),
    { lead: t("activity.doubt.lead") },
    el(
      "ul",
      {},
      el("li", {}, el("a", { href: "/settings/sessions" }, t("activity.see_sessions"))),
      el("li", {}, el("a", { href: "/settings/security" }, t("activity.change_password"))),
    ),
    el("p", { class: "hint" }, t("activity.lock_text")),
    el("div", { class: "form-actions" }, lock),
  );
}

async function lockDown() {
  const isWanted = await confirmed({
    title: t("activity.lock"),
    text: t("activity.lock_confirm"),
    verb: t("activity.lock"),
  });
  if (!isWanted) return;
  await orSignIn(call("post", "/auth/lock"));
  tellSignedOut();
  await leaveFor("/login?signed_out=1");
}
