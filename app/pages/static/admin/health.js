// @ts-check
// What the service finds when it looks at itself, its version, and its keys.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { moment } from "../base/format.js";
import { act } from "../base/form.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { showNotice } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actButton, button } from "../console/fields.js";
import { open } from "../console/open.js";
import { badge, facts, panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";
import { checkName, inWords } from "./found.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/doctor">} Findings */
/** @typedef {Data<"get", "/admin/keys">} Keys */

const LEVELS = /** @type {const} */ (["fail", "warn", "ok"]);
const KINDS = /** @type {const} */ ({ fail: "bad", warn: "warn", ok: "good" });

open(async () => {
  const hosts = { findings: el("div"), installation: el("div"), keys: el("div") };
  const again = actButton(t("health.again"), {}, () => examine(hosts.findings), {
    busy: t("health.checking"),
  });
  byId("page-actions").append(again);
  const found = examine(hosts.findings);
  await Promise.all([found, showInstallation(hosts.installation), showKeys(hosts.keys)]);
  replace(byId("content"), hosts.findings, hosts.installation, hosts.keys);
});

/** @param {HTMLElement} host */
async function examine(host) {
  const findings = await load(() => orSignIn(call("get", "/admin/doctor")));
  const { worst, checks, checked_at: at } = findings;
  const lead = t("health.checked", { time: moment(at) });
  replace(
    host,
    panel(
      "findings",
      t(`health.worst.${worst}`),
      { lead, actions: [badge(t(`health.level.${worst}`), KINDS[worst])] },
      el(
        "ul",
        { class: "checks" },
        ...LEVELS.flatMap((level) => checks.filter((one) => one.level === level).map(checkLine)),
      ),
    ),
  );
}

/** @param {Findings["checks"][number]} check */
function checkLine({ check, level, ...found }) {
  return el(
    "li",
    { class: level },
    icon(level === "ok" ? "done" : "problem"),
    el(
      "div",
      {},
      el("strong", {}, checkName(check)),
      el("span", { class: "visually-hidden" }, ` (${t(`health.level.${level}`)})`),
      el("p", {}, inWords(found)),
    ),
  );
}

/** @param {HTMLElement} host */
async function showInstallation(host) {
  const [{ version, build_time: built }, { setup_state: state }] = await load(() =>
    orSignIn(Promise.all([call("get", "/admin/system-info"), call("post", "/auth/check")])),
  );
  const clean = button(t("health.clean"));
  clean.addEventListener("click", () =>
    act(clean, t("one_moment"), async () => {
      const removed = await orSignIn(call("post", "/admin/maintenance/cleanup"));
      const total = Object.values(removed).reduce((sum, one) => sum + one, 0);
      toast(t("health.cleaned", { count: total }));
    }),
  );
  replace(
    host,
    panel(
      "installation",
      t("health.installation"),
      {},
      facts([
        [t("health.version"), version],
        [t("health.built"), built && moment(built)],
        [t("health.setup"), t(state === "ready" ? "health.setup_done" : "health.setup_open")],
      ]),
      state !== "ready" &&
        el(
          "p",
          {},
          el("a", { class: "button primary", href: "/setup/storage" }, t("health.finish")),
        ),
      el(
        "div",
        { class: "form-actions" },
        clean,
        el("span", { class: "hint" }, t("health.clean_text")),
      ),
    ),
  );
}

/** @param {HTMLElement} host */
async function showKeys(host) {
  const {
    source,
    keys,
    unreadable_secrets: unreadable,
  } = await load(() => orSignIn(call("get", "/admin/keys")));
  const rotate = actButton(t("health.rotate"), {}, () => rotateKeys(host));
  const state = (
    /** @type {Keys["keys"][number]} */ { is_signing: isSigning, retired_at: retired },
  ) =>
    isSigning
      ? badge(t("health.signing"), "good")
      : t("health.retired", { time: retired ? moment(retired) : "" });
  replace(
    host,
    panel(
      "keys",
      t("health.keys"),
      { lead: t("health.keys_lead"), actions: source === "file" ? [rotate] : [] },
      source === "environment" && el("p", { class: "hint" }, t("health.keys_environment")),
      unreadable > 0 &&
        el(
          "div",
          { class: "note bad" },
          icon("problem"),
          el("p", {}, t("health.unreadable", { count: unreadable })),
        ),
      table(
        t("health.keys"),
        [
          { label: t("health.key"), cell: ({ id }) => el("span", { class: "mono" }, id) },
          { label: t("health.created"), cell: ({ created_at: at }) => at && moment(at) },
          { label: t("health.state"), cell: state },
        ],
        keys,
      ),
    ),
  );
}

/** @param {HTMLElement} host */
async function rotateKeys(host) {
  const isWanted = await confirmed({
    title: t("health.rotate"),
    text: t("health.rotate_text"),
    verb: t("health.rotate"),
  });
  if (!isWanted) return;
  const done = await asOwner(t("health.rotate_why"), () =>
    orSignIn(call("post", "/admin/keys/rotate")),
  );
  if (!done) return;
  if (done.unreadable > 0) showNotice(t("health.unreadable", { count: done.unreadable }));
  toast(t("health.rotated", { count: done.resealed }));
  await showKeys(host);
}
