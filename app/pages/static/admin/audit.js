// @ts-check
// Who did what, and when: the audit log with filters, details and export.

import { call, callForFile } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { openDialog } from "../base/dialog.js";
import { byId, el, replace } from "../base/dom.js";
import { ago, count, countOrAbout, moment, momentOf } from "../base/format.js";
import { act, field, textInput } from "../base/form.js";
import { hasText, t } from "../base/i18n.js";
import { load } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { actionText, named, sentence } from "../console/actions.js";
import { button, select } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { facts } from "../console/panel.js";
import { saveFile, today } from "../console/save_file.js";
import { detailPairs } from "./audit_details.js";
import { actorOf, sentenceOf } from "./events.js";

/** @import { Data } from "../../types" */
/** @typedef {import("./events.js").Entry} Entry */
/** @import { Query } from "../console/list.js" */

const MAX_EXPORTED = 100_000;
/** What the sentence of an entry says already: they are no names. */
const PARTS = new Set(["audit_log", "config", "maintenance", "outbox", "secret_keys"]);
const FORMATS = { csv: "CSV", jsonl: "JSON Lines" };

open(async () => {
  const actions = await load(() => orSignIn(call("get", "/admin/audit-logs/actions")));
  const filters = filterForm(actions);
  const host = el("div", { class: "list" });
  replace(byId("content"), filters, host);
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("audit.title"),
    filters,
    sorted: { by: "created_at", order: "desc" },
    opens: true,
    ask: (query, signal) => call("get", "/admin/audit-logs", { query: asked(query), signal }),
    columns: [
      {
        label: t("audit.action"),
        sort: "action",
        cell: (entry) =>
          el(
            "button",
            {
              type: "button",
              class: "link",
              "aria-haspopup": "dialog",
              click: () => showEntry(entry),
            },
            sentence(sentenceOf(entry, named)),
          ),
      },
      { label: t("audit.by"), cell: actorOf },
      {
        label: t("audit.address"),
        sort: "ip_address",
        cell: ({ ip_address: address }) => address && el("span", { class: "mono" }, address),
      },
      {
        label: t("audit.time"),
        sort: "created_at",
        cell: ({ created_at: at }) => el("time", { datetime: at, title: ago(at) }, moment(at)),
      },
    ],
  });
  const take = button(t("audit.export"), { class: "secondary" });
  take.addEventListener("click", () => act(take, t("one_moment"), () => offerExport(take)));
  byId("page-actions").append(take, reloadButton(reload));
});

/** @param {Data<"get", "/admin/audit-logs/actions">} actions */
function filterForm(actions) {
  const all = /** @type {[string, string]} */ (["", t("list.all")]);
  const types = [...new Set(actions.map((one) => one.entity_type))].sort();
  /** @type {[string, string][]} */
  const options = actions.map(({ action }) => [action, actionText(action)]);
  options.sort(([, one], [, other]) => one.localeCompare(other));
  const wide = field(t("audit.search"), textInput("keyword", { type: "search", maxlength: 255 }));
  wide.classList.add("wide");
  const more = [
    field(
      t("audit.type"),
      select("entity_type", [
        all,
        ...types.map((one) => /** @type {[string, string]} */ ([one, typeText(one)])),
      ]),
    ),
    field(
      t("audit.actor"),
      select("actor", [
        all,
        ["user", t("audit.actor.user")],
        ["cli", t("audit.actor.cli")],
        ["system", t("audit.system")],
      ]),
    ),
    field(
      t("audit.user_id"),
      textInput("user_id", { type: "number", min: 0, inputmode: "numeric" }),
    ),
    field(t("audit.address"), textInput("ip_address", { maxlength: 45 })),
    field(t("audit.after"), textInput("after", { type: "datetime-local" })),
    field(t("audit.before"), textInput("before", { type: "datetime-local" })),
  ];
  const given = new URLSearchParams(window.location.search);
  const isOpen = ["entity_type", "actor", "user_id", "ip_address", "after", "before"].some((name) =>
    given.get(name),
  );
  return el(
    "form",
    { class: "filters", role: "search" },
    el(
      "div",
      { class: "toolbar" },
      wide,
      field(t("audit.action"), select("action", [all, ...options])),
    ),
    el(
      "details",
      { open: isOpen },
      el("summary", {}, t("audit.more")),
      el("div", { class: "toolbar" }, ...more),
    ),
  );
}

/**
 * The filters as the service takes them.
 * @param {Record<string, string>} query
 */
function asked(query) {
  const taken = { ...query };
  for (const name of ["after", "before"]) if (query[name]) taken[name] = momentOf(query[name]);
  return /** @type {Query} */ (taken);
}

/** @param {Entry} entry */
function sentenceText(entry) {
  // Names may be written from right to left: U+2068 and U+2069 keep them apart.
  return sentenceOf(entry, (name) => `\u2068${name}\u2069`).join("");
}

/** What kind of thing an entry is about; one that this version does not know keeps its name. */
function typeText(/** @type {string} */ type) {
  return hasText(`entity.${type}`) ? t(`entity.${type}`) : type.replaceAll("_", " ");
}

/** @param {Entry} entry */
function showEntry(entry) {
  const done = el("button", { type: "button", class: "secondary" }, t("dialog.close"));
  const details = detailPairs(entry);
  const content = el(
    "div",
    { class: "dialog-body" },
    facts([
      [t("audit.time"), moment(entry.created_at)],
      [t("audit.by"), actorOf(entry)],
      [t("audit.about"), PARTS.has(entry.entity_name ?? "") ? null : entry.entity_name],
      [t("audit.type"), typeText(entry.entity_type)],
      [t("audit.address"), entry.ip_address],
      [t("audit.agent"), entry.user_agent],
      [t("audit.number"), String(entry.id)],
    ]),
    details.length > 0 && el("h3", {}, t("details")),
    details.length > 0 && facts(details),
    el("div", { class: "dialog-actions" }, done),
  );
  done.addEventListener("click", openDialog(sentenceText(entry), [content], { focus: done }));
}

/**
 * Whether more entries match than can be exported; an estimate would not do.
 * @param {Query} query
 */
async function hasMore(query) {
  const beyond = { ...query, limit: 1, offset: MAX_EXPORTED };
  const { items } = await orSignIn(call("get", "/admin/audit-logs", { query: beyond }));
  return items.length > 0;
}

/** @param {HTMLElement} opener */
async function offerExport(opener) {
  const query = asked(
    Object.fromEntries(
      [...new URLSearchParams(window.location.search)].filter(([name]) => name !== "offset"),
    ),
  );
  const { total, total_is_exact: isExact } = await orSignIn(
    call("get", "/admin/audit-logs", { query: { ...query, limit: 1 } }),
  );
  const isMuch = isExact ? total > MAX_EXPORTED : await hasMore(query);
  // More were found than an estimate may have expected.
  const shown = isMuch ? Math.max(total, MAX_EXPORTED + 1) : total;
  const matching = { count: shown, total: countOrAbout(shown, isExact) };
  const done = el("button", { type: "button", class: "secondary" }, t("dialog.close"));
  const takers = Object.entries(FORMATS).map(([format, name]) => {
    const take = () => {
      close();
      act(opener, t("one_moment"), () =>
        download(query, /** @type {keyof typeof FORMATS} */ (format)),
      );
    };
    return button(name, { class: "primary", click: take });
  });
  const text = isMuch
    ? t("audit.too_many", { ...matching, most: count(MAX_EXPORTED) })
    : t("audit.export_text", matching);
  const content = el(
    "div",
    { class: "dialog-body" },
    el("p", { class: "lead" }, text),
    el("div", { class: "dialog-actions" }, done, ...(isMuch ? [] : takers)),
  );
  const close = openDialog(t("audit.export"), [content], { focus: done });
  done.addEventListener("click", close);
}

/**
 * @param {Query} query
 * @param {keyof typeof FORMATS} format
 */
async function download(query, format) {
  const file = await asOwner(t("audit.export_why"), () =>
    orSignIn(callForFile("get", "/admin/audit-logs/export", { query: { ...query, format } })),
  );
  if (file) saveFile(file, `gatehouse-audit-${today()}.${format}`);
}
