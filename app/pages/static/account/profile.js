// @ts-check
// How others see somebody: name and picture; and what the account consists of.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { day, size } from "../base/format.js";
import { field, handle, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { submitLine, warnOfLoss } from "../console/fields.js";
import { open, showWho } from "../console/open.js";
import { badge, facts, panel } from "../console/panel.js";
import { toast } from "../console/toast.js";
import { showPicture } from "./picture.js";

/** @import { Data } from "../../types" */
/** @typedef {import("../base/session.js").Me} Me */
/** @typedef {Data<"get", "/teams">} Teams */

open(async (me) => {
  const teams = await load(() => orSignIn(call("get", "/teams")));
  const picture = el("div");
  const changed = (/** @type {NonNullable<Me["profile"]>} */ profile) => {
    me.profile = profile;
    showWho(me);
    showPicture(picture, me, changed);
  };
  showPicture(picture, me, changed);
  replace(
    byId("content"),
    picture,
    namePanel(me, changed),
    accountPanel(me),
    storagePanel(me),
    teamsPanel(teams),
  );
});

/**
 * @param {Me} me
 * @param {(profile: NonNullable<Me["profile"]>) => void} changed
 */
function namePanel(me, changed) {
  const name = textInput("display_name", {
    value: me.profile?.display_name ?? "",
    maxlength: 64,
    autocomplete: "name",
  });
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(t("profile.display_name"), name, {
      hint: t("profile.display_name_hint", { name: me.username }),
    }),
    submitLine(t("save")),
  );
  const saved = warnOfLoss(form);
  handle(form, {
    busy: t("saving"),
    fields: { bad_request: "display_name" },
    async submit({ display_name = "" }) {
      const profile = await orSignIn(
        call("patch", "/auth/profile", { body: { display_name: display_name.trim() } }),
      );
      name.value = profile.display_name ?? "";
      saved();
      changed(profile);
      toast(t("saved"));
    },
  });
  return panel("name", t("profile.name"), {}, form);
}

/** @param {Me} me */
function accountPanel(me) {
  return panel(
    "account",
    t("profile.account"),
    {},
    facts([
      [t("profile.username"), me.username],
      [
        t("profile.email"),
        el(
          "span",
          { class: "line" },
          el("span", {}, me.email),
          !me.email_verified && badge(t("security.unconfirmed"), "warn"),
          el("a", { href: "/settings/security" }, t("profile.change")),
        ),
      ],
      [t("profile.role"), t(`role.${me.role}`)],
      [t("profile.since"), day(me.created_at)],
    ]),
  );
}

/** @param {Me} me */
function storagePanel({ storage_used: used = 0, storage_quota: quota = 0 }) {
  const words = quota
    ? t("profile.storage_of", { used: size(used), quota: size(quota) })
    : t("profile.storage_used", { used: size(used) });
  return panel(
    "storage",
    t("profile.storage"),
    {},
    quota > 0 &&
      el("meter", {
        min: 0,
        max: quota,
        high: quota * 0.9,
        value: used,
        "aria-label": t("profile.storage"),
      }),
    el("p", {}, words),
  );
}

/** @param {Teams} teams */
function teamsPanel(teams) {
  if (teams.length === 0) return null;
  const lines = teams.map((team) =>
    el("li", { class: "line" }, el("span", {}, team.name), badge(t(`team_role.${team.my_role}`))),
  );
  return panel("teams", t("profile.teams"), {}, el("ul", { class: "rows" }, ...lines));
}
