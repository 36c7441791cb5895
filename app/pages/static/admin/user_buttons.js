// @ts-check
// Buttons that act on an account.

import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { toast } from "../console/toast.js";

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
    const acted = await asOwner(t("user.why"), async () => ({ answer: await orSignIn(work()) }));
    if (!acted) return;
    if (done) toast(t(done));
    await then?.(acted.answer);
  });
}
