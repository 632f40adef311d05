/** One row of `a2a push ls`: where a client wants to be told. Never its token, credentials or query. */
export interface PushConfigInfo {
  readonly task: string
  /** As its client calls it. */
  readonly id: string
  /** As the node does, and the ids of its notifications begin. */
  readonly hook: string
  readonly url: string
  readonly version: '1.0' | '0.3'
  /** Notifications that wait for it, also those that are not shown. */
  readonly waiting: number
  /** Those that were given up. */
  readonly givenUp: number
}

/** A notification that was not taken yet, or by nobody. */
export interface PushNoticeInfo {
  /** The receiver knows it by this one. */
  readonly id: string
  /** Of its config. */
  readonly hook: string
  readonly task: string
  /** As in {@link PushConfigInfo}; null: its config is being deleted. */
  readonly url: string | null
  readonly event: string
  readonly at: string
  /** Tries that failed. */
  readonly tries: number
  /** Why the last one failed; null before the first. */
  readonly reason: string | null
  /** Events before its own that it tells of as well, since too many waited for its config. */
  readonly folded: number
}

/** `a2a push ls`. */
export interface PushList {
  readonly configs: readonly PushConfigInfo[]
  /** `dueAt`: not tried before then. */
  readonly waiting: readonly (PushNoticeInfo & { readonly dueAt: string })[]
  /** Those that are not tried any more, the oldest first. */
  readonly dead: readonly (PushNoticeInfo & { readonly deadAt: string })[]
  /** Given up since the node started, and not kept: their callers had too many, or all had. */
  readonly pushedOut: number
  /** There is more of some of it than is told. */
  readonly more: boolean
}

/** Calls about push notifications of the A2A gateway. */
export interface PushCalls {
  /** @throws NodeError CONFLICT when this node serves no A2A clients */
  'push.list': { params: Record<string, never>; result: PushList }
  /**
   * Tries a notification again, now: one that waits or that nobody took, by its id or a beginning that no other one has; or
   * with `all` everything that nobody took.
   * @throws NodeError NOTIFICATION_NOT_FOUND, AMBIGUOUS_NAME; CONFLICT when this node serves no A2A clients; USAGE with neither of both
   */
  'push.retry': { params: { readonly id?: string; readonly all?: boolean }; result: { readonly ids: readonly string[] } }
}

/** What answers {@link PushCalls}. */
export interface PushAdmin {
  list(): Promise<PushList>
  /** null: all that nobody took. */
  retry(id: string | null): Promise<readonly string[]>
}
