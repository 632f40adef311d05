/** State of a channel (spec a2a-mcp-mesh, ChannelStatus). */
export type ChannelStatus = 'connecting' | 'open' | 'reconnecting' | 'closed'

/** A channel to one peer, over the links that carry it one after another. */
export interface ChannelState {
  readonly status: ChannelStatus
  /** Milliseconds; when it came to this status. */
  readonly since: number
  /** When it closes by itself unless it opens; null while open or closed. */
  readonly giveUpAt: number | null
  /** How long it may be without a link, in milliseconds. */
  readonly giveUpMs: number
  /** Why it closed; null until then. */
  readonly reason: string | null
}

/** Inputs of a channel. */
export type ChannelInput =
  /** The peer took up the channel over a new link. */
  | { readonly type: 'acknowledged' }
  | { readonly type: 'disconnected' }
  | { readonly type: 'close'; readonly reason: string }
  | { readonly type: 'tick' }

/** Effects for the owner of a channel. */
export type ChannelEffect =
  | { readonly type: 'opened'; readonly isAgain: boolean }
  /** Look for a new link until `giveUpAt`. */
  | { readonly type: 'reconnect'; readonly giveUpAt: number }
  | { readonly type: 'closed'; readonly reason: string }

/** The next state and its effects, or why the move is impossible (the state stays). */
export type ChannelStep =
  | { readonly ok: true; readonly state: ChannelState; readonly effects: readonly ChannelEffect[] }
  | { readonly ok: false; readonly reason: string }

/** Default time without a link after which a channel closes: 60 s. */
export const DEFAULT_GIVE_UP_MS = 60_000

/** A channel that begins to connect. */
export function createChannel(now: number, giveUpMs: number = DEFAULT_GIVE_UP_MS): ChannelState {
  return { status: 'connecting', since: now, giveUpAt: now + giveUpMs, giveUpMs, reason: null }
}

/** Moves a channel: connecting to open, open to reconnecting and back, anything to closed, nothing out of closed. */
export function stepChannel(state: ChannelState, input: ChannelInput, now: number): ChannelStep {
  if (state.status === 'closed') return { ok: false, reason: `closed: ${state.reason ?? ''}` }
  switch (input.type) {
    case 'acknowledged':
      if (state.status === 'open') return { ok: false, reason: 'already open' }
      return opened(state, now)
    case 'disconnected':
      if (state.status !== 'open') return { ok: false, reason: `no link to lose while ${state.status}` }
      return lost(state, now + state.giveUpMs, now)
    case 'close':
      return closed(state, input.reason, now)
    case 'tick':
      if (state.giveUpAt === null || now < state.giveUpAt) return { ok: true, state, effects: [] }
      return closed(state, `no link within ${state.giveUpMs} ms`, now)
  }
}

function opened(state: ChannelState, now: number): ChannelStep {
  const effect: ChannelEffect = { type: 'opened', isAgain: state.status === 'reconnecting' }
  return { ok: true, state: { ...state, status: 'open', since: now, giveUpAt: null }, effects: [effect] }
}

function lost(state: ChannelState, giveUpAt: number, now: number): ChannelStep {
  return {
    ok: true,
    state: { ...state, status: 'reconnecting', since: now, giveUpAt },
    effects: [{ type: 'reconnect', giveUpAt }]
  }
}

function closed(state: ChannelState, reason: string, now: number): ChannelStep {
  return {
    ok: true,
    state: { ...state, status: 'closed', since: now, giveUpAt: null, reason },
    effects: [{ type: 'closed', reason }]
  }
}
