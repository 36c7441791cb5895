// Types of calls, from the API description of the running service (see docs/pages.md).
import type { components, paths } from "gatehouse-api";

export type Schemas = components["schemas"];
export type Method = "get" | "post" | "put" | "patch" | "delete";

type Full<P extends string> = `/api/v1${P}`;
type Operation<M extends Method, P extends string> =
  Full<P> extends keyof paths
    ? M extends keyof paths[Full<P>]
      ? paths[Full<P>][M]
      : never
    : never;
type Success<O> = O extends { responses: infer R }
  ? R[keyof R & (200 | 201)] extends { content: { "application/json": infer A } }
    ? A
    : never
  : never;
type Parameters<O, K extends "path" | "query"> = O extends { parameters: infer P }
  ? K extends keyof P
    ? NonNullable<P[K]>
    : never
  : never;

/** Paths below /api/v1 that have an operation of this method. */
export type Path<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } }
    ? P extends Full<infer Rest>
      ? Rest
      : never
    : never;
}[keyof paths];

export type Data<M extends Method, P extends string> =
  Success<Operation<M, P>> extends { data: infer D } ? D : never;

/** What may be sent: the service overlooks members that it does not know, the compiler does not. */
export type Body<M extends Method, P extends string> =
  Operation<M, P> extends { requestBody?: { content: { "application/json": infer B } } }
    ? Known<B>
    : never;
type Known<B> = B extends unknown
  ? { [K in keyof B as string extends K ? never : number extends K ? never : K]: B[K] }
  : never;

declare const entered: unique symbol;
/** What somebody typed or chose, or what an address has: only the service knows whether it fits. */
export type Entered = string & { readonly [entered]: true };

type Query<Q> = { [K in keyof Q]: Q[K] | Entered };

export interface Options<M extends Method, P extends string> {
  /** Sent as JSON. */
  body?: Body<M, P>;
  /** Sent as it is, such as FormData. */
  form?: FormData;
  /** The values of {names} in the path. */
  path?: { [K in keyof Parameters<Operation<M, P>, "path">]: string | number };
  query?: Query<Parameters<Operation<M, P>, "query">>;
  signal?: AbortSignal;
}
