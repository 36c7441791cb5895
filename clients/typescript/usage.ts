/** What a frontend does with the client; compiling it checks that the description fits. */
import { gatehouse } from "./client";
import type { components, paths } from "./schema";

type Me = components["schemas"]["MeData"];
type ErrorAnswer = components["schemas"]["ErrorAnswer"];
type LoginRefusal =
  paths["/api/v1/auth/login"]["post"]["responses"][403]["content"]["application/json"]["code"];

type PasskeyRefusal =
  paths["/api/v1/auth/passkeys/login/finish"]["post"]["responses"][401]["content"]["application/json"];

const api = gatehouse();

/** Sign in; returns who it is, or the methods of the second step, or why not. */
export async function signIn(identifier: string, password: string): Promise<Me | string[] | string> {
  const login = await api.POST("/api/v1/auth/login", { body: { identifier, password } });
  if (login.error) {
    return login.error.code;
  }
  const outcome = login.data.data;
  if ("flow_token" in outcome) {
    return outcome.methods;
  }
  if (outcome.status === "password_change_required") {
    return outcome.status;
  }
  const me = await api.GET("/api/v1/auth/me", { params: { query: { fields: "profile" } } });
  if (me.error) return me.error.code;
  api.meanFor(me.data.data.id); // nothing is saved for whoever signs in beside this page
  return me.data.data;
}

export async function finishWithCode(flow_token: string, code: string): Promise<boolean> {
  const { data, error } = await api.POST("/api/v1/auth/mfa/challenge/verify", {
    body: { flow_token, method: "totp", code },
  });
  if (error?.code === "auth.mfa_attempts_exceeded") {
    throw new Error("sign in again");
  }
  return data?.data.status === "authenticated";
}

export async function endOtherSessions(): Promise<number> {
  const { data } = await api.DELETE("/api/v1/auth/sessions/others");
  return data?.data.removed ?? 0;
}

export async function endSession(session_id: string): Promise<void> {
  await api.DELETE("/api/v1/auth/sessions/{session_id}", { params: { path: { session_id } } });
}

export async function uploadAvatar(file: File): Promise<string | null> {
  const { data } = await api.POST("/api/v1/auth/profile/avatar/upload", {
    body: { file: file as unknown as string },
    bodySerializer: () => {
      const form = new FormData();
      form.append("file", file);
      return form;
    },
  });
  return data?.data.profile.avatar.url_512 ?? null;
}

/** What the service says of any refusal, for the one place where a page shows it. */
export function told({ code, msg }: ErrorAnswer): string {
  return code === "rate_limited" ? "Too many requests." : msg;
}

export async function rename(passkey_id: string, name: string): Promise<string | null> {
  const { error } = await api.PATCH("/api/v1/auth/passkeys/{passkey_id}", {
    params: { path: { passkey_id } },
    body: { name },
  });
  return error ? told(error) : null;
}

/** Only what changes is sent. */
export async function darken(): Promise<"system" | "light" | "dark" | null> {
  const { data } = await api.PATCH("/api/v1/auth/preferences", { body: { theme_mode: "dark" } });
  return data?.data.theme_mode ?? null;
}

/** The service speaks the browser's own JSON of passkeys. */
export async function signInWithPasskey(): Promise<boolean> {
  const start = await api.POST("/api/v1/auth/passkeys/login/start", { body: {} });
  if (start.error) return false;
  const { flow_id, public_key } = start.data.data;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(public_key.publicKey);
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential;
  const { data, error, response } = await api.POST("/api/v1/auth/passkeys/login/finish", {
    body: { flow_id, credential: credential.toJSON() },
  });
  if (response.status === 401 && (error as PasskeyRefusal).data?.credential_unknown) {
    hide(publicKey.rpId, credential.id);
  }
  return data?.data.status === "authenticated";
}

/** Not every browser can be told yet, nor TypeScript's description of them. */
function hide(rpId: string | undefined, credentialId: string): void {
  type Signals = { signalUnknownCredential?: (what: object) => Promise<void> };
  (PublicKeyCredential as Signals).signalUnknownCredential?.({ rpId, credentialId });
}

export async function addPasskey(name: string): Promise<string | null> {
  const start = await api.POST("/api/v1/auth/passkeys/register/start", { body: { name } });
  if (start.error) return told(start.error);
  const { flow_id, public_key } = start.data.data;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(public_key.publicKey);
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential;
  const { error } = await api.POST("/api/v1/auth/passkeys/register/finish", {
    body: { flow_id, credential: credential.toJSON() },
  });
  return error ? told(error) : null;
}

/** Before a stream or a picture is asked for again. */
export async function isStillSignedIn(): Promise<boolean> {
  return api.refresh();
}

export async function leave(): Promise<string | null> {
  const { error } = await api.logOut();
  return error ? told(error) : null;
}

export async function teams(keyword: string): Promise<string[]> {
  const { data } = await api.GET("/api/v1/teams", { params: { query: { keyword, limit: 20 } } });
  return data?.data.map(({ name, my_role }) => `${name} (${my_role})`) ?? [];
}

/** Of administrators only: who still waits for the activation. */
export async function newcomers(): Promise<string[]> {
  const query = { status: "pending", sort_by: "created_at", sort_order: "asc" } as const;
  const { data } = await api.GET("/api/v1/admin/users", { params: { query } });
  return data?.data.items.map(({ username }) => username) ?? [];
}

/** Of administrators only; returns why an account was left as it is, by id. */
export async function disable(ids: number[]): Promise<Map<number, string>> {
  const { data, error } = await api.POST("/api/v1/admin/users/bulk", {
    body: { ids, action: "disable" },
  });
  if (error) throw new Error(told(error));
  return new Map(data.data.refused.map(({ id, msg }) => [id, msg]));
}

/** Tells `changed` which folders to list anew; null means all of them. */
export function listen(changed: (folders: number[] | null) => void): EventSource {
  const stream = new EventSource("/api/v1/auth/events/storage");
  stream.onmessage = ({ data }) => {
    const event: components["schemas"]["StorageEvent"] = JSON.parse(data);
    changed(event.kind === "sync.required" ? null : event.affected_parent_ids);
  };
  return stream;
}

export function explained(code: LoginRefusal): string {
  return code === "auth.pending_activation" ? "Look into your mailbox." : "Not now.";
}

// --- what must not compile -----------------------------------------------------------------------

export async function wrong(): Promise<void> {
  // @ts-expect-error - a login needs a password
  await api.POST("/api/v1/auth/login", { body: { identifier: "ada" } });
  // @ts-expect-error - there is no such method
  await api.POST("/api/v1/auth/mfa/challenge/verify", { body: { flow_token: "", method: "sms", code: "" } });
  // @ts-expect-error - there is no such path
  await api.GET("/api/v1/auth/you");
  const workspace: components["schemas"]["StorageEvent"]["workspace"] = { kind: "personal" };
  // @ts-expect-error - only a team's has an id
  workspace.team_id;
  // @ts-expect-error - nothing is refused with such a code
  const code: components["schemas"]["ErrorCode"] = "auth.no_such_code";
  told({ code, msg: "", data: null, error: null });
  // @ts-expect-error - a login is never refused for that
  explained("passkey.name_invalid");
}

/** Set some settings and return others to their defaults; returns what changed, or why nothing did. */
export async function changeSettings(
  values: Record<string, string | string[]>,
  unset: string[],
): Promise<string[] | string> {
  const { data, error } = await api.PATCH("/api/v1/admin/config", { body: { values, unset } });
  if (error) {
    return error.code === "conflict" ? "you would shut yourself out" : error.msg;
  }
  return [...data.data.changed.map((setting) => setting.key), ...data.data.also_changed];
}

export async function signInsOfToday(timezone: string): Promise<number> {
  const query = { days: 1, timezone };
  const { data } = await api.GET("/api/v1/admin/overview", { params: { query } });
  return data?.data.daily_reports[0]?.sign_ins ?? 0;
}
