// @ts-check
// The passkeys and outside accounts by which somebody signs in, each of which can be taken away.

import { call, Refusal } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { el } from "../base/dom.js";
import { ago, day } from "../base/format.js";
import { asSaid, t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @typedef {import("./user_security.js").About} About */
/** @typedef {import("./user_security.js").Credentials} Credentials */

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
export function passkeyTable(about, passkeys) {
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
export function linkTable(about, links) {
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
