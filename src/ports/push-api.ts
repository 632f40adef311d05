/** One row of `a2a push ls`: a webhook of a client. Never its token, credentials or query. */
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
  /** Notifications that were given up. */
  readonly givenUp: number
}

/** A pending or dead notification. */
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
  readonly tries: number
  /** Why the last one failed; null before the first. */
  readonly reason: string | null
  /** Earlier events that it reports as well, since too many waited for its config. */
  readonly folded: number
}

/** `a2a push ls`. */
export interface PushList {
  readonly configs: readonly PushConfigInfo[]
  /** `dueAt`: not tried before then. */
  readonly waiting: readonly (PushNoticeInfo & { readonly dueAt: string })[]
  /** Notifications that are not tried any more, the oldest first. */
  readonly dead: readonly (PushNoticeInfo & { readonly deadAt: string })[]
  /** Given up since the node started, and not kept: their callers had too many, or all had. */
  readonly pushedOut: number
  /** Some lists are truncated. */
  readonly more: boolean
}

/** Calls about push notifications of the A2A gateway. */
export interface PushCalls {
  /** @throws NodeError CONFLICT when this node serves no A2A clients */
  'push.list': { params: Record<string, never>; result: PushList }
  /**
   * Tries a pending or dead notification now, by its id or a unique prefix; with `all` every dead one.
   * @throws NodeError NOTIFICATION_NOT_FOUND, AMBIGUOUS_NAME; CONFLICT when this node serves no A2A clients; USAGE with
   * neither of both
   */
  'push.retry': {
    params: { readonly id?: string; readonly all?: boolean }
    result: { readonly ids: readonly string[] }
  }
}

/** The implementation of {@link PushCalls}. */
export interface PushAdmin {
  list(): Promise<PushList>
  /** null: every dead notification. */
  retry(id: string | null): Promise<readonly string[]>
}
