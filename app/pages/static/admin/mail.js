// @ts-check
// What the service sends: the server, what waits, and the texts.

import { call } from "../base/api.js";
import { byId, el, replace } from "../base/dom.js";
import { ago, moment } from "../base/format.js";
import { field, handle, textInput } from "../base/form.js";
import { english, t } from "../base/i18n.js";
import { load } from "../base/retry.js";
import { showNotice } from "../base/problem.js";
import { orSignIn } from "../base/session.js";
import { actButton, button, select, submitLine } from "../console/fields.js";
import { list, reloadButton } from "../console/list.js";
import { open } from "../console/open.js";
import { badge, facts, panel } from "../console/panel.js";
import { openRows } from "../console/place.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/admin/mail/outbox">["items"][number]} Mail */

const STATUSES = /** @type {const} */ (["queued", "sending", "sent", "failed"]);
const KINDS = /** @type {const} */ ({
  queued: "warn",
  sending: "plain",
  sent: "good",
  failed: "bad",
});
const SERVER = ["mail_smtp_host", "mail_smtp_port", "mail_from_address"];

open(async (me) => {
  const [templates, ...server] = await load(() =>
    orSignIn(
      Promise.all([
        call("get", "/admin/mail/templates"),
        ...SERVER.map((key) => call("get", "/admin/config/{key}", { path: { key } })),
      ]),
    ),
  );
  const texts = templatesPanel(templates);
  replace(
    byId("content"),
    serverPanel(
      server.map(({ value }) => String(value)),
      me.email,
    ),
    outboxPanel(templates, Boolean(server[0]?.value)),
    texts,
  );
  openRows(texts);
});

/**
 * @param {string[]} server
 * @param {string} address
 */
function serverPanel([host = "", port = "", from = ""], address) {
  const form = el(
    "form",
    { method: "post", novalidate: true },
    field(
      t("mail.test_to"),
      textInput("target", { type: "email", value: address, required: true }),
    ),
    submitLine(t("mail.test")),
  );
  handle(form, {
    busy: t("mail.testing"),
    own: {
      "mail.delivery_failed": "mail.test_failed",
      "mail.not_configured": "mail.not_configured",
    },
    async submit({ target = "" }) {
      const body = { action: "send_test_email", target_email: target.trim() };
      await orSignIn(call("post", "/admin/config/{key}/action", { path: { key: "mail" }, body }));
      toast(t("mail.test_sent", { email: target.trim() }));
    },
  });
  const words = host
    ? facts([
        [t("mail.server"), `${host}:${port}`],
        [t("mail.from"), from],
      ])
    : el("p", { class: "note warn" }, t("mail.no_server"));
  return panel("server", t("mail.server"), { actions: [toServer(t("mail.change"))] }, words, form);
}

/** @param {string} words */
function toServer(words) {
  return el("a", { class: "button secondary", href: "/admin/settings/mail" }, words);
}

function toTest() {
  return button(t("mail.test"), { click: () => byId("target").focus() });
}

/**
 * @param {{ template: string }[]} templates
 * @param {boolean} hasServer
 */
function outboxPanel(templates, hasServer) {
  const host = el("div", { class: "list" });
  const all = /** @type {[string, string]} */ (["", t("list.all")]);
  const filters = el(
    "form",
    { class: "toolbar", role: "search" },
    field(
      t("users.status"),
      select("status", [
        all,
        ...STATUSES.map((one) => /** @type {[string, string]} */ ([one, t(`mail.${one}`)])),
      ]),
    ),
    field(
      t("mail.template"),
      select("template", [
        all,
        ...templates.map(
          ({ template }) =>
            /** @type {[string, string]} */ ([template, t(`mail_template.${template}`)]),
        ),
      ]),
    ),
    field(t("mail.recipient"), textInput("recipient", { type: "search", maxlength: 255 })),
  );
  const flush = actButton(t("mail.flush"), { class: "secondary small" }, async () => {
    const { sent, waiting, error } = await orSignIn(call("post", "/admin/mail/outbox/flush"));
    await reload();
    if (error) showNotice(`${t("mail.server_says")} ${error}`);
    else toast(t("mail.flushed", { sent, waiting }));
  });
  const section = panel(
    "outbox",
    t("mail.outbox"),
    { lead: t("mail.outbox_lead"), actions: [flush] },
    filters,
    host,
  );
  /** @type {() => Promise<void>} */
  const reload = list({
    host,
    label: t("mail.outbox"),
    filters,
    empty: {
      title: t("mail.outbox_empty"),
      text: t("mail.outbox_empty_text"),
      actions: [hasServer ? toTest() : toServer(t("steps.mail"))],
    },
    ask: (query, signal) =>
      call("get", "/admin/mail/outbox", {
        query: { ...query, limit: 20 },
        signal,
      }),
    columns: [
      { label: t("mail.recipient"), cell: ({ recipient }) => recipient },
      { label: t("mail.template"), cell: ({ template }) => t(`mail_template.${template}`) },
      { label: t("users.status"), cell: statusCell },
      {
        label: t("users.created"),
        cell: ({ created_at: at }) => el("time", { datetime: at, title: moment(at) }, ago(at)),
      },
      {
        label: t("mail.retry"),
        kind: "actions",
        cell: (mail) => retryButton(mail, () => reload()),
      },
    ],
  });
  section.querySelector(".panel-actions")?.append(reloadButton(reload));
  return section;
}

/** @param {Mail} mail */
function statusCell({ status, last_error: error, is_file: isFile, due_at: due }) {
  const words = status === "sent" && isFile ? t("mail.as_file") : t(`mail.${status}`);
  return [
    badge(words, KINDS[status]),
    error && el("span", { class: "hint" }, english(error)),
    status === "queued" &&
      error &&
      due &&
      el("span", { class: "hint" }, t("mail.next_try", { time: ago(due) })),
  ];
}

/**
 * @param {Mail} mail
 * @param {() => Promise<void>} reload
 */
function retryButton({ id, status, recipient }, reload) {
  if (status !== "queued") return null;
  return actButton(
    t("mail.retry"),
    { class: "link", "aria-label": `${t("mail.retry")}: ${recipient}` },
    async () => {
      await orSignIn(call("post", "/admin/mail/outbox/{id}/retry", { path: { id } }));
      toast(t("mail.retried"));
      await reload();
    },
  );
}

/** @param {{ template: string, is_overridden: boolean }[]} templates */
function templatesPanel(templates) {
  return panel(
    "templates",
    t("mail.templates"),
    { lead: t("mail.templates_lead") },
    table(
      t("mail.templates"),
      [
        {
          label: t("mail.template"),
          cell: ({ template }) =>
            el("a", { href: `/admin/mail/${template}` }, t(`mail_template.${template}`)),
        },
        {
          label: t("mail.text"),
          cell: ({ is_overridden: isOwn }) =>
            isOwn ? badge(t("settings.changed")) : t("mail.built_in"),
        },
      ],
      templates,
    ),
  );
}
