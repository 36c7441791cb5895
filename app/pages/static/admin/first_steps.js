// @ts-check
// What is worth doing in a new installation, until it is done or somebody does not want to see it.

import { call } from "../base/api.js";
import { el } from "../base/dom.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { keep, kept } from "../base/kept.js";
import { button } from "../console/fields.js";
import { panel } from "../console/panel.js";

const HIDDEN = "gatehouse-first-steps-hidden";

/** @type {Record<string, { href: string, isDone: () => Promise<boolean> }>} */
const STEPS = {
  address: {
    href: "/admin/settings/site",
    isDone: async () => (await stored("public_site_url")).is_set,
  },
  brand: {
    href: "/admin/settings/site",
    isDone: async () => (await stored("branding_title")).is_set,
  },
  mail: { href: "/admin/mail", isDone: async () => (await stored("mail_smtp_host")).is_set },
  invite: {
    href: "/admin/users/invitations",
    isDone: async () => {
      const [accounts, invitations] = await Promise.all([
        call("get", "/admin/users", { query: { limit: 1 } }),
        call("get", "/admin/users/invitations", { query: { limit: 1 } }),
      ]);
      return accounts.total > 1 || invitations.total > 0;
    },
  },
  second_factor: {
    href: "/settings/security",
    isDone: async () =>
      (await call("get", "/auth/mfa")).factors.length > 0 ||
      (await call("get", "/auth/passkeys")).length > 0,
  },
};

/**
 * Returns the panel, or nothing when all is done. A step about which nothing can be learnt is left
 * out.
 * @returns {Promise<HTMLElement[]>}
 */
export async function firstSteps() {
  if (kept("localStorage", HIDDEN)) return [];
  const found = await Promise.all(
    Object.entries(STEPS).map(async ([name, { href, isDone }]) => ({
      name,
      href,
      isDone: await isDone().catch(() => null),
    })),
  );
  const known = found.filter((one) => one.isDone !== null);
  if (known.every((one) => one.isDone)) return [];
  const lines = known.map(({ name, href, isDone }) => {
    const title = t(`steps.${name}`);
    const mark = isDone ? el("span", { class: "visually-hidden" }, ` (${t("steps.done")})`) : null;
    return el(
      "li",
      { class: isDone ? "done" : "" },
      icon(isDone ? "done" : "next"),
      el("span", {}, isDone ? title : el("a", { href }, title), mark),
    );
  });
  const hide = button(t("steps.hide"), { class: "link" });
  const steps = panel(
    "first-steps",
    t("steps.title"),
    { lead: t("steps.lead"), actions: [hide] },
    el("ul", { class: "steps" }, ...lines),
  );
  hide.addEventListener("click", () => {
    keep("localStorage", HIDDEN, "1");
    steps.remove();
  });
  return [steps];
}

/** @param {string} key */
function stored(key) {
  return call("get", "/admin/config/{key}", { path: { key } });
}
