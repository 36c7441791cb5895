// @ts-check
// The passkeys of an account: added, renamed, deleted.

import { call } from "../base/api.js";
import { asOwner } from "../base/confirm.js";
import { confirmed, formDialog } from "../base/dialog.js";
import { el, replace } from "../base/dom.js";
import { ago, day, moment } from "../base/format.js";
import { act, field, textInput } from "../base/form.js";
import { t } from "../base/i18n.js";
import { showNotice, showProblem } from "../base/problem.js";
import { onDemand } from "../base/retry.js";
import { orSignIn } from "../base/session.js";
import { createPasskey, isPossible, NoPasskey, whileMaking } from "../base/webauthn.js";
import { deviceWords } from "../console/agents.js";
import { button, warnOfLoss } from "../console/fields.js";
import { badge, empty, panel } from "../console/panel.js";
import { table } from "../console/table.js";
import { toast } from "../console/toast.js";

/** @import { Data } from "../../types" */
/** @typedef {Data<"get", "/auth/passkeys">[number]} Passkey */

const MAX_NAME_LENGTH = 128;
const NAME_FIELDS = { "passkey.name_invalid": "name", "passkey.name_too_long": "name" };

/**
 * @param {HTMLElement} host
 * @param {Passkey[]} passkeys
 */
export function showPasskeys(host, passkeys) {
  const add = () => isPossible() && button(t("passkeys.add"), { click: () => askName(host) });
  const isEmpty = passkeys.length === 0;
  const columns = [
    {
      label: t("passkeys.name"),
      cell: (/** @type {Passkey} */ one) => [
        el("span", {}, one.name),
        one.backed_up && badge(t("passkeys.synced")),
      ],
    },
    {
      label: t("passkeys.created"),
      cell: (/** @type {Passkey} */ { created_at: at }) =>
        el("time", { datetime: at, title: moment(at) }, day(at)),
    },
    {
      label: t("passkeys.used"),
      cell: (/** @type {Passkey} */ { last_used_at: at }) =>
        at ? el("time", { datetime: at, title: moment(at) }, ago(at)) : t("never"),
    },
    {
      label: t("passkeys.manage"),
      kind: /** @type {const} */ ("actions"),
      cell: (/** @type {Passkey} */ one) => [
        button(t("passkeys.rename"), {
          class: "link",
          id: renameId(one.id),
          "aria-label": `${t("passkeys.rename")}: ${one.name}`,
          click: () => rename(host, one),
        }),
        deleteButton(host, one),
      ],
    },
  ];
  replace(
    host,
    panel(
      "passkeys",
      t("passkeys.title"),
      { lead: t("passkeys.lead"), actions: [!isEmpty && add()] },
      !isPossible() &&
        el(
          "p",
          { class: "hint" },
          t(
            window.isSecureContext && "PublicKeyCredential" in window
              ? "passkey.address"
              : "passkey.unsupported",
          ),
        ),
      isEmpty
        ? isPossible() && empty(t("passkeys.empty"), t("passkeys.empty_text"), add())
        : table(t("passkeys.title"), columns, passkeys),
    ),
  );
}

/** @param {number} id */
function renameId(id) {
  return `rename-passkey-${id}`;
}

/** What the browser is told of them; nothing here waits for it to arrive. */
function signals() {
  return onDemand(() => import("../base/signals.js"));
}

/**
 * Shows, and tells the browser, what has changed; the focus goes to the passkey `id`, if given, and
 * else to the heading.
 * @param {HTMLElement} host
 * @param {string} done what is said of it
 * @param {{ id?: number, before?: import("../base/signals.js").Told | null }} [what] `before` is
 *   what browsers knew before
 */
async function reload(host, done, { id = 0, before } = {}) {
  signals().then(
    ({ tellOfPasskeys }) => tellOfPasskeys(before),
    () => undefined,
  );
  showPasskeys(host, await orSignIn(call("get", "/auth/passkeys")));
  (document.getElementById(renameId(id)) ?? host.querySelector("h2"))?.focus();
  if (done) toast(done);
}

/**
 * A dialog with one name; `submit` may throw refusals of it.
 * @param {string} title
 * @param {string} verb
 * @param {string} value
 * @param {(name: string) => Promise<(() => Promise<void>) | null>} submit returns what is left to
 *   do when the dialog is closed, or null to leave it open
 */
function nameDialog(title, verb, value, submit) {
  const name = textInput("name", {
    id: "passkey-name",
    value,
    required: true,
    maxlength: MAX_NAME_LENGTH,
  });
  const problem = el("p", { class: "field-error", role: "alert" });
  const close = formDialog(title, verb, [field(t("passkeys.name"), name), problem], {
    fields: NAME_FIELDS,
    async submit(values) {
      replace(problem);
      const goOn = await submit(values.name ?? "");
      if (!goOn) return;
      close();
      await goOn().catch(showProblem);
    },
    taken(refusal) {
      if (refusal.code in NAME_FIELDS) return false;
      close();
      return false;
    },
  });
  warnOfLoss(/** @type {HTMLFormElement} */ (name.form));
  name.select();
  return problem;
}

/** @param {HTMLElement} host */
function askName(host) {
  const problem = nameDialog(
    t("passkeys.add"),
    t("passkeys.continue"),
    deviceWords(navigator.userAgent),
    async (name) => {
      const started = await asOwner(t("passkeys.why_add"), () =>
        orSignIn(call("post", "/auth/passkeys/register/start", { body: { name } })),
      );
      if (!started) return null;
      let id;
      try {
        ({ id } = await whileMaking(async () => {
          const credential = await createPasskey(started.public_key.publicKey);
          const body = { flow_id: started.flow_id, credential, name };
          return orSignIn(call("post", "/auth/passkeys/register/finish", { body }));
        }));
      } catch (error) {
        if (!(error instanceof NoPasskey)) throw error;
        problem.textContent = error.isSilent ? "" : t(`passkey.${error.reason}`);
        return null;
      }
      return () => reload(host, t("passkeys.added"), { id });
    },
  );
}

/**
 * @param {HTMLElement} host
 * @param {Passkey} passkey
 */
function rename(host, { id, name: before }) {
  nameDialog(t("passkeys.rename"), t("save"), before, async (name) => {
    await orSignIn(
      call("patch", "/auth/passkeys/{passkey_id}", { path: { passkey_id: id }, body: { name } }),
    );
    return () => reload(host, t("saved"), { id });
  });
}

/**
 * @param {HTMLElement} host
 * @param {Passkey} passkey
 */
function deleteButton(host, { id, name }) {
  const remove = button(t("delete"), { class: "link", "aria-label": `${t("delete")}: ${name}` });
  const work = async () => {
    const isWanted = await confirmed({
      title: t("passkeys.delete_title", { name }),
      text: t("passkeys.delete_text"),
      verb: t("passkeys.delete"),
    });
    if (!isWanted) return;
    const before = await signals().then(
      ({ readPasskeys }) => readPasskeys(),
      () => null,
    );
    const done = await asOwner(t("passkeys.why_delete"), async () => {
      await orSignIn(call("delete", "/auth/passkeys/{passkey_id}", { path: { passkey_id: id } }));
      return true;
    });
    if (!done) return;
    await reload(host, t("passkeys.deleted"), { before });
  };
  remove.addEventListener("click", () =>
    act(remove, t("one_moment"), work, {
      own: { conflict: "security.last_way" },
      fail: (error) => failed(host, error),
    }),
  );
  return remove;
}

/**
 * @param {HTMLElement} host
 * @param {unknown} error
 */
async function failed(host, error) {
  const { code } = /** @type {{ code?: string }} */ (error);
  if (code === "not_found") {
    await reload(host, "").catch(showProblem);
    showNotice(t("list.gone"));
  } else showProblem(error, { own: { conflict: "security.last_way" } });
}
