// better-auth on node:http, two processes. `node server.mjs fill` makes tables and accounts.

import cluster from "node:cluster";
import http from "node:http";

import { hash, verify } from "@node-rs/argon2";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";

const env = process.env;

async function open() {
  if (env.PEER_POSTGRES_HOST) {
    const { default: pg } = await import("pg");
    const host = env.PEER_POSTGRES_HOST;
    return new pg.Pool({ host, user: "postgres", database: env.PEER_DATABASE, max: 10 });
  }
  const { default: Sqlite } = await import("better-sqlite3");
  const database = new Sqlite(env.PEER_DATABASE, { timeout: 20000 });
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = NORMAL");
  return database;
}

// Argon2id at the cost that all services have in this comparison.
const cost = { memoryCost: 19456, timeCost: 2, parallelism: 1 };
const options = {
  baseURL: `http://127.0.0.1:${env.PEER_PORT}`,
  secret: "of the bench ".repeat(4),
  database: await open(),
  emailAndPassword: {
    enabled: true,
    password: {
      hash: (password) => hash(password, cost),
      verify: ({ hash: stored, password }) => verify(stored, password),
    },
  },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { disabled: true },
};
const auth = betterAuth(options);

async function fill() {
  await (await getMigrations(options)).runMigrations();
  const { internalAdapter: accounts, password } = await auth.$context;
  const stored = await password.hash(env.PEER_PASSWORD);
  for (let n = 1; n <= Number(env.PEER_ACCOUNTS); n++) {
    const email = env.PEER_EMAIL.replace("{}", n);
    const user = await accounts.createUser({ email, name: email, emailVerified: true });
    const account = { userId: user.id, providerId: "credential", accountId: user.id };
    await accounts.linkAccount({ ...account, password: stored });
  }
}

if (process.argv[2] === "fill") {
  await fill();
  process.exit(0);
} else if (cluster.isPrimary) {
  cluster.fork();
  cluster.fork();
} else {
  http.createServer(toNodeHandler(auth)).listen(Number(env.PEER_PORT), "127.0.0.1");
}
