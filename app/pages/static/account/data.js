// @ts-check
// A copy of everything that is stored about somebody, and the end of the account.

import { call, callForFile } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { leaveFor } from "../base/page.js";
import { orSignIn, tellSignedOut } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { open } from "../console/open.js";
import { panel } from "../console/panel.js";
import { saveFile, today } from "../console/save_file.js";
import { toast } from "../console/toast.js";

const FORMATS = /** @type {const} */ (["zip", "json"]);
const LOST = ["files", "sessions", "name", "forever"];

open((me) => {
  replace(byId("content"), exportPanel(me.username), deletionPanel(me.username));
});

/** @param {string} username */
function exportPanel(username) {
  const buttons = FORMATS.map((format) => {
    return actButton(
      t(`data.export.${format}`),
      { class: format === "zip" ? "primary" : "secondary" },
      () => download(username, format),
      { busy: t("data.collecting") },
    );
  });
  return panel(
    "export",
    t("data.export"),
    { lead: t("data.export.lead") },
    el("p", { class: "hint" }, t("data.export.text")),
    el("div", { class: "form-actions" }, ...buttons),
  );
}

/**
 * @param {string} username
 * @param {typeof FORMATS[number]} format
 */
async function download(username, format) {
  const file = await asOwner(t("data.export.why"), () =>
    orSignIn(callForFile("get", "/auth/export", { query: { format } })),
  );
  if (!file) return;
  saveFile(file, `gatehouse-${username}-${today()}.${format}`);
  toast(t("data.exported"));
}

/** @param {string} username */
function deletionPanel(username) {
  const remove = actButton(t("data.delete"), { class: "danger" }, () => deleteAccount(username));
  return panel(
    "deletion",
    t("data.delete"),
    { lead: t("data.delete.lead") },
    el("ul", {}, ...LOST.map((what) => el("li", {}, t(`data.lost.${what}`)))),
    el("div", { class: "form-actions" }, remove),
  );
}

/** @param {string} username */
async function deleteAccount(username) {
  const isWanted = await confirmed({
    title: t("data.delete.title"),
    text: t("data.delete.text"),
    verb: t("data.delete"),
    typed: username,
  });
  if (!isWanted) return;
  const isDone = await asOwner(t("data.delete.why"), async () => {
    await orSignIn(call("delete", "/auth/account", { body: { confirm: username } }));
    return true;
  });
  if (!isDone) return;
  tellSignedOut();
  await leaveFor("/login?deleted=1");
}
