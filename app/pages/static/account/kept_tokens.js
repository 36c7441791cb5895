// @ts-check
// After a new password: tokens stay valid, unless somebody wants otherwise.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { orSignIn } from "../base/session.js";
import { actButton } from "../console/fields.js";
import { toast } from "../console/toast.js";
import { isExpired } from "../console/tokens.js";

/**
 * Offers to revoke all of them, if there are any.
 * @param {HTMLElement} form below which it says so
 */
export async function offerToEnd(form) {
  const tokens = await call("get", "/auth/tokens");
  const count = tokens.filter((one) => !isExpired(one)).length;
  document.getElementById("kept-tokens")?.remove();
  if (count === 0) return;
  const end = actButton(t("tokens.end_all"), { class: "secondary small" }, async () => {
    const { removed } = await orSignIn(call("delete", "/auth/tokens"));
    box.remove();
    toast(t("tokens.all_ended", { count: removed }));
    document.getElementById("password-title")?.focus();
  });
  const box = el(
    "div",
    { class: "note warn line", id: "kept-tokens", role: "status" },
    el("p", {}, t("password.tokens_kept", { count })),
    end,
  );
  form.after(box);
}
