// @ts-check
// How the service is doing: numbers, sign-ins per day, what happened last, and what is worth doing
// first.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { countOrAbout, moment, zoneName } from "../base/format.js";
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { showProblem } from "../base/problem.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { select } from "../console/fields.js";
import { reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { empty, panel } from "../console/panel.js";
import { eventLine } from "./events.js";
import { firstSteps } from "./first_steps.js";
import { checkName, inWords } from "./found.js";
import { plot } from "./plot.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/overview">} Overview */

const DAYS = ["7", "30", "90"];
// More characters of a number get smaller type.
const SHORT = 7;

open(async () => {
  const given = new URLSearchParams(window.location.search).get("days") ?? "";
  let days = DAYS.includes(given) ? given : "30";
  const range = select(
    "days",
    DAYS.map((one) => [one, t("overview.days", { count: Number(one) })]),
    { value: days, class: "narrow", "aria-label": t("overview.range") },
  );
  const show = async () => {
    const ask = () =>
      orSignIn(
        call("get", "/admin/overview", {
          query: { days: Number(days), timezone: zoneName(), event_limit: 6 },
        }),
      );
    draw(await load(ask), range);
  };
  const again = () => show().catch(showProblem);
  range.addEventListener("change", () => {
    days = range.value;
    window.history.replaceState(null, "", `?days=${days}`);
    again();
  });
  document.addEventListener("visibilitychange", () => document.hidden || again());
  byId("page-actions").append(reloadButton(again));
  await show();
  byId("content").prepend(...(await firstSteps()));
});

/**
 * @param {Overview} data
 * @param {HTMLSelectElement} range
 */
function draw(
  { stats, system_health: health, daily_reports: newest, recent_events: events, ...rest },
  range,
) {
  const reports = [...newest].reverse();
  const dates = reports.map(({ date }) => date);
  const values = (/** @type {"sign_ins" | "failed_sign_ins" | "new_users"} */ name) =>
    reports.map((one) => one[name]);
  const hasFocus = range === document.activeElement;
  const steps = byId("content").querySelector("#first-steps");
  const latest = el("ul", { class: "events" }, ...events.map((event) => eventLine(event)));
  const signIns = plot(t("overview.sign_ins"), dates, [
    { name: t("overview.completed"), values: values("sign_ins"), shape: "bars" },
    { name: t("overview.failed"), values: values("failed_sign_ins"), shape: "line" },
  ]);
  const newUsers = plot(t("overview.new_users"), dates, [
    { name: t("overview.new_users"), values: values("new_users"), shape: "bars" },
  ]);
  replace(
    byId("content"),
    steps,
    healthLine(health),
    rest.is_audit_log_enabled === false &&
      el("div", { class: "note info" }, el("p", {}, t("overview.no_log"))),
    tiles(stats, rest.estimated_stats),
    panel("sign-ins", t("overview.sign_ins"), { actions: [range] }, signIns),
    el(
      "div",
      { class: "two" },
      panel("new-users", t("overview.new_users"), {}, newUsers),
      panel(
        "latest",
        t("overview.latest"),
        { actions: [el("a", { href: "/admin/audit" }, t("overview.all_events"))] },
        events.length > 0 ? latest : empty(t("list.empty")),
      ),
    ),
  );
  if (hasFocus) range.focus();
}

/** @param {Overview["system_health"]} health */
function healthLine({ status, components, checked_at: at }) {
  if (status === "healthy") return null;
  const bad = components.filter((one) => one.status !== "healthy");
  const kind = status === "unhealthy" ? "bad" : "warn";
  return el(
    "div",
    { class: `note ${kind}`, role: "status" },
    icon("problem"),
    el(
      "div",
      {},
      el(
        "p",
        {},
        el("strong", {}, t(`overview.health.${status}`)),
        at ? ` ${t("overview.checked", { time: moment(at) })}` : "",
      ),
      el(
        "ul",
        { class: "plain" },
        ...bad.map(({ name, ...found }) => el("li", {}, checkName(name), ": ", inWords(found))),
      ),
      el("a", { href: "/admin/health" }, t("overview.to_health")),
    ),
  );
}

/**
 * @param {Overview["stats"]} stats
 * @param {Overview["estimated_stats"]} estimated
 */
function tiles(stats, estimated) {
  const number = (/** @type {keyof Overview["stats"]} */ name) =>
    countOrAbout(stats[name], !estimated.includes(name));
  const counted = (/** @type {keyof Overview["stats"]} */ name) => ({
    count: stats[name],
    number: number(name),
  });
  const share = (/** @type {keyof Overview["stats"]} */ part) => {
    const percent = new Intl.NumberFormat(document.documentElement.lang, {
      style: "percent",
    }).format(Math.min(1, stats[part] / Math.max(1, stats.total_users)));
    const isExact = !estimated.includes(part) && !estimated.includes("total_users");
    return isExact ? percent : t("about", { number: percent });
  };
  return el(
    "ul",
    { class: "tiles" },
    tile(
      "accounts",
      number("total_users"),
      t("overview.accounts.more", {
        today: number("new_users_today"),
        pending: number("pending_users"),
        disabled: number("disabled_users"),
      }),
      "/admin/users",
    ),
    tile("sessions", number("live_sessions"), t("overview.sessions.more")),
    tile(
      "second_factor",
      share("users_with_second_factor"),
      t("overview.second_factor.more", counted("users_with_second_factor")),
    ),
    tile(
      "passkey",
      share("users_with_passkey"),
      t("overview.passkey.more", counted("users_with_passkey")),
    ),
    tile(
      "invitations",
      number("pending_invitations"),
      t("overview.invitations.more"),
      "/admin/users/invitations",
    ),
    tile(
      "mails",
      number("mails_waiting"),
      t("overview.mails.more", counted("mails_failed_24h")),
      "/admin/mail",
    ),
  );
}

/**
 * @param {string} name
 * @param {string} number
 * @param {string} more
 * @param {string} [href]
 */
function tile(name, number, more, href) {
  const label = t(`overview.${name}`);
  return el(
    "li",
    { class: "card tile" },
    el("p", { class: "tile-name" }, href ? el("a", { href }, label) : label),
    el("p", { class: number.length > SHORT ? "tile-number long" : "tile-number" }, number),
    el("p", { class: "hint" }, more),
  );
}
