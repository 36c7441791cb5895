/** What an administrator's page does with the typed client: tests compile it, and run it. */
import { gatehouse } from "./client.js";

const api = gatehouse();

/** Make an account; returns its id. */
export async function add(body: { username: string; email: string }): Promise<number> {
  const { data, error } = await api.POST("/api/v1/admin/users", { body });
  if (error) throw new Error(error.code);
  return data.data.user.id;
}

export async function find(keyword: string): Promise<number[]> {
  const { data, error } = await api.GET("/api/v1/admin/users", { params: { query: { keyword } } });
  if (error) throw new Error(error.code);
  return data.data.items.map(({ id }) => id);
}

/** Returns the status that the account has then. */
export async function lock(id: number): Promise<"active" | "disabled"> {
  const { data, error } = await api.PATCH("/api/v1/admin/users/{id}", {
    params: { path: { id } },
    body: { status: "disabled" },
  });
  if (error) throw new Error(error.code);
  return data.data.status;
}

/** Returns why it was refused, else null. */
export async function remove(id: number): Promise<string | null> {
  const { error } = await api.DELETE("/api/v1/admin/users/{id}", { params: { path: { id } } });
  return error ? error.code : null;
}

/** Returns the name and the number of sessions in the caller's own data. */
export async function exported(): Promise<[string, number]> {
  const { data, error } = await api.GET("/api/v1/auth/export");
  if (error) throw new Error(error.code);
  if (typeof data === "string") throw new Error("nobody asked for an archive");
  return [data.account.username, data.sessions.length];
}
