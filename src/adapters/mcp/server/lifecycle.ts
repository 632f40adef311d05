/** State of a connection (spec mcp-runtime, State Machine). CLOSED is final. */
export type LifecycleState = 'STARTING' | 'INITIALIZING' | 'RUNNING' | 'CLOSED'

/**
 * Input of the state machine: the two steps of the handshake, the server's refusal of `initialize`, any other message
 * without a version claim, a message that claims a version of the protocol itself (it needs no handshake), the end.
 */
export type LifecycleInput = 'initialize' | 'initialized' | 'initialize-refused' | 'other' | 'claimed' | 'close'

/**
 * Verdict on the message: it goes to the server, is refused with NOT_INITIALIZED, is refused as a second handshake, or
 * is dropped silently.
 */
export type LifecycleVerdict = 'pass' | 'not-initialized' | 'initialized-already' | 'ignore'

/** One step of {@link stepLifecycle}. */
export interface LifecycleStep {
  readonly state: LifecycleState
  readonly verdict: LifecycleVerdict
}

/** The next state of a connection, and the verdict on the message that led there. Total. */
export function stepLifecycle(state: LifecycleState, input: LifecycleInput): LifecycleStep {
  if (input === 'close' || state === 'CLOSED') return { state: 'CLOSED', verdict: 'ignore' }
  switch (input) {
    case 'initialize':
      if (state === 'RUNNING') return { state, verdict: 'initialized-already' }
      return { state: 'INITIALIZING', verdict: 'pass' }
    case 'initialized':
      // Before `initialize` it has no effect; as a notification it cannot be refused.
      if (state === 'STARTING') return { state, verdict: 'ignore' }
      return { state: 'RUNNING', verdict: 'pass' }
    case 'initialize-refused':
      return { state: state === 'INITIALIZING' ? 'STARTING' : state, verdict: 'ignore' }
    case 'claimed':
      return { state, verdict: 'pass' }
    case 'other':
      return { state, verdict: state === 'RUNNING' ? 'pass' : 'not-initialized' }
  }
}
