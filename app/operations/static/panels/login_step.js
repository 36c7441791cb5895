// Signing in with a password, which more than one panel begins with.

import { halfway } from "../steps.js";
import { inWords } from "./duration.js";
import { secondFactor } from "./second_factor.js";

export const password = { label: "Password", type: "password" };

const OUTCOMES = {
  authenticated: (data) => `Signed in. The access token lives for ${inWords(data.expires_in)}.`,
  mfa_required: () => halfway("The password is right, but nobody is signed in yet: a second factor is needed, too."),
  password_change_required: () => halfway("The sign-in is right, but the password must be changed before anything else: see “Change the password”."),
};

function told(data) {
  return OUTCOMES[data.status](data);
}

export const loginStep = {
  id: "login",
  title: "Sign in",
  method: "POST",
  path: "/auth/login",
  why: "Sets three cookies: access and refresh token, which no script can read, and a CSRF token, which this page reads and sends back with every change.",
  action: "Sign in",
  fields: [
    { name: "identifier", label: "Username or e-mail", autocomplete: "username" },
    { ...password, name: "password", autocomplete: "current-password" },
  ],
  explain(data, memory, { body }) {
    memory.hasAdmin = true;
    memory.current_password = body.password;
    return told(data);
  },
  extra: (data, tools) => (data.status === "mfa_required" ? secondFactor(data, tools, told) : null),
};
