// The list of sessions with a button at each, and one for all others.

import { el } from "../base/dom.js";
import { pill } from "../exchange.js";
import { ownTable, rowButton, shortTime } from "./table.js";

export function sessionTable(sessions, { run }) {
  const rows = sessions.map((session) => row(session, run));
  return [
    ownTable("Sessions of this account", ["Browser", "Address", "Last seen"], rows),
    sessions.length > 1 && othersButton(rows, sessions, run),
  ];
}

function row(session, run) {
  const where = browserName(session.user_agent);
  const end = async () => {
    const call = { method: "DELETE", path: `auth/sessions/${session.id}` };
    const answer = await run(call, () => ended(session));
    if (answer?.ok) node.remove();
  };
  const label = `Revoke ${session.is_current ? "this session" : `the session of ${where}`}`;
  const node = el(
    "tr",
    { "data-current": String(session.is_current) },
    el("td", {}, where, session.is_current && [" ", pill("this one", "plain")]),
    el("td", {}, session.ip_address || "unknown"),
    el("td", {}, shortTime(session.last_seen_at)),
    rowButton("Revoke", label, end),
  );
  return node;
}

function othersButton(rows, sessions, run) {
  const end = async () => {
    const call = { method: "DELETE", path: "auth/sessions/others" };
    const answer = await run(call, (data) => `${data.removed} other sessions ended.`);
    if (!answer?.ok) return;
    rows.forEach((node, index) => sessions[index].is_current || node.remove());
    button.remove();
  };
  const button = el("button", { type: "button", class: "secondary", click: end }, "Revoke all others");
  return button;
}

function ended(session) {
  return session.is_current
    ? "This session is over, and its cookies are gone: sign in again to go on."
    : "The session is over. Its access token was refused from that moment on.";
}

// A user agent is long and half of it is history; the product people know is in its middle.
function browserName(userAgent) {
  const products = ["Edg", "OPR", "Firefox", "HeadlessChrome", "Chrome", "Safari", "curl"];
  const found = products.find((name) => (userAgent || "").includes(`${name}/`));
  return found ? found.replace("Edg", "Edge").replace("OPR", "Opera") : userAgent || "unknown";
}
