// From an empty installation to a signed-out administrator, one call at a time.

import { stepsPanel } from "../steps.js";
import { inWords } from "./duration.js";
import { loginStep, password } from "./login_step.js";
import { sessionTable } from "./session_table.js";

const username = { name: "username", label: "Username", value: "admin", autocomplete: "username" };
const email = { name: "email", label: "E-mail", value: "admin@example.com", autocomplete: "email" };

const steps = [
  {
    id: "check",
    title: "Look at the state",
    method: "POST",
    path: "/auth/check",
    why: "What a sign-in page asks first: is there an administrator yet, and which ways in are open?",
    action: "Check",
    explain(data, memory) {
      memory.hasAdmin = data.setup_state !== "needs_admin";
      return {
        needs_admin: "The installation is empty: the next step creates its administrator.",
        needs_storage: "There is an administrator; the operator still has to set up storage.",
        ready: "The installation is ready. You can sign in.",
      }[data.setup_state];
    },
  },
  {
    id: "setup",
    title: "Create the first administrator",
    method: "POST",
    path: "/auth/setup",
    why: "Possible as long as there is no account, and never again afterwards.",
    action: "Create",
    fields: [
      username,
      email,
      { ...password, name: "password", autocomplete: "new-password", hint: "8 to 128 characters." },
    ],
    isSettled: (memory) => memory.hasAdmin,
    explain(data, memory, { body }) {
      Object.assign(memory, { identifier: data.username, password: body.password });
      return `${data.username} is the administrator. Nobody is signed in yet.`;
    },
  },
  loginStep,
  {
    id: "me",
    title: "Who am I?",
    method: "GET",
    path: "/auth/me",
    why: "The account, its profile, preferences and quota. Groups can be chosen with ?fields=.",
    action: "Ask",
    explain: (data) => `You are ${data.username}, role ${data.role}.`,
  },
  {
    id: "refresh",
    title: "Refresh the tokens",
    method: "POST",
    path: "/auth/refresh",
    why: "Exchanges the refresh token for a new pair. Each token works once. A second use ends every session of the account, because one of the two users must be a thief.",
    action: "Refresh",
    explain: (data) => `A new pair of tokens; the access token lives for ${inWords(data.expires_in)}.`,
  },
  {
    id: "sessions",
    title: "See and end sessions",
    method: "GET",
    path: "/auth/sessions",
    why: "Where the account is signed in. If you want another session to end, sign in a second time first.",
    action: "List",
    explain: (data) => `${data.length} ${data.length === 1 ? "session" : "sessions"}.`,
    extra: sessionTable,
  },
  {
    id: "password",
    title: "Change the password",
    method: "PUT",
    path: "/auth/password",
    why: "Ends every session of the account and begins a new one here.",
    action: "Change",
    fields: [
      { ...password, name: "current_password", label: "Current password", autocomplete: "current-password" },
      { ...password, name: "new_password", label: "New password", autocomplete: "new-password", hint: "8 to 128 characters." },
    ],
    explain(data, memory, { body }) {
      Object.assign(memory, { password: body.new_password, current_password: body.new_password });
      return "Changed. All other sessions are over; this one was replaced.";
    },
  },
  {
    id: "logout",
    title: "Sign out",
    method: "POST",
    path: "/auth/logout",
    why: "Ends the session and clears the cookies. The access token is worthless from this moment, on every worker.",
    action: "Sign out",
    explain: () => "Signed out. “Who am I?” is now refused.",
  },
];

export const firstSession = {
  id: "first-session",
  title: "First session",
  build: () =>
    stepsPanel({
      id: firstSession.id,
      title: firstSession.title,
      lead: "Eight calls to a running service, in the order in which an application makes them. Each step shows what is sent and what comes back; nothing here is simulated.",
      steps,
      isOpen: true,
    }),
};
