// Signing in with a password, which more than one panel begins with.

export const password = { label: "Password", type: "password" };

const OUTCOMES = {
  authenticated: (data) => `Signed in. The access token lives for ${Math.round(data.expires_in / 60)} minutes.`,
  mfa_required: () => "The password is right. Hand flow_token and a code to POST /auth/mfa/challenge/verify, below.",
  password_change_required: () => "The password is right, but must be changed before anything else.",
};

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
    return OUTCOMES[data.status](data);
  },
};
