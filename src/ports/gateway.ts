import type { AbortSignalLike } from '../kit/clock.js'
import type { Unsubscribe } from '../kit/events.js'
import type { Message } from '../domain/gateway/message.js'
import type { PushHook, PushTarget, PushVersion } from '../domain/gateway/push.js'
import type { GatewayEvent, GatewaySnapshot } from '../domain/gateway/task.js'
import type { PageCursor, TaskFilter } from '../domain/gateway/task-order.js'
import type { Principal } from './node-api.js'

export type { GatewayEvent, GatewaySnapshot }

/** The turn of a caller to read stored contents of tasks, which may be large. */
export interface ContentsTurn {
  /**
   * Resolves at the turn. Awaited before each read from the store.
   * @throws NodeError CHANNEL_CLOSED: the caller is gone
   */
  take(): Promise<void>
  /** Counts the bytes of a read. */
  read(bytes: number): void
  /** Nothing is read until further notice, so others may have the turn. */
  rest(): void
}

/** Options of a caller whose reads have turns. */
interface WithTurn {
  /** Default: reads wait for nobody. */
  readonly turn?: ContentsTurn
}

/** A message of a client of the A2A gateway, and for whom it is. */
export interface GatewaySend extends WithTurn {
  readonly message: Message
  /** An agent by its whole name in URLs; null: any agent with the skill. */
  readonly agent: string | null
  /** A capability's id; null: the agent's default one. */
  readonly skill: string | null
  /** May the answer be a message? With `wait` that of a read, else one that comes soon and is the whole answer. */
  readonly mayAnswer: boolean
  /** Resolve once the task rests (ended, or waits for its client)? */
  readonly wait: boolean
  /** Does the turn end with its client? Its sender cancels it then; after a restart the node does. */
  readonly isAttended?: true
  /** Signal of a waiting client: when it hangs up the wait ends, and the task continues. */
  readonly signal?: AbortSignalLike
  /** Webhook at which its client wants notifications of the task. */
  readonly push?: PushRequest
}

/** The webhook of a client, in the words of its protocol version. */
export interface PushRequest {
  readonly target: PushTarget
  readonly version: PushVersion
}

/** Owners that may get notifications without a request. */
export interface Owners {
  /**
   * Is the owner of a task gone for good: its token or client revoked, its member put out? That a token merely expired
   * does not count.
   */
  isGone(owner: string): boolean
  /** Calls back each time that an owner was removed. */
  onGone(listener: () => void): Unsubscribe
}

/** The clients of the OAuth server of the node, whether it serves now or not. */
export interface KnownClients {
  has(id: string): boolean
  /** Calls back each time that one is revoked. */
  onGone(listener: () => void): Unsubscribe
}

/** Webhooks of clients for their tasks. A caller sees its own tasks, as in {@link Gateway}. */
export interface PushConfigs {
  /** Takes the place of the one with its id. @throws NodeError TASK_NOT_FOUND, INVALID_INPUT, OVERLOADED */
  set(by: Principal, task: string, request: PushRequest): Promise<PushHook>
  /** @throws NodeError TASK_NOT_FOUND, of the config too */
  get(by: Principal, task: string, id: string): Promise<PushHook>
  /** @throws NodeError TASK_NOT_FOUND */
  list(by: Principal, task: string): Promise<readonly PushHook[]>
  /**
   * Starts no further delivery to it and drops its waiting notifications. It may be gone already.
   * @throws NodeError TASK_NOT_FOUND
   */
  remove(by: Principal, task: string, id: string): Promise<void>
}

/** The outcome of a message: a task, or a direct answer. */
export type GatewayReply =
  | { readonly kind: 'task'; readonly snapshot: GatewaySnapshot }
  | { readonly kind: 'message'; readonly message: Message }

/** Which page is asked for. */
export interface GatewayPaging extends WithTurn {
  /** null: the first. */
  readonly after: PageCursor | null
  readonly limit: number
  /** With history and artifacts? Else they are empty. */
  readonly isWhole: boolean
}

/** A page of tasks. */
export interface GatewayPage {
  readonly tasks: readonly GatewaySnapshot[]
  readonly next: PageCursor | null
  readonly total: number
}

/**
 * Tasks as clients of the A2A protocol know them. A caller sees only its own tasks; any other one is TASK_NOT_FOUND.
 * Durable: every reported state survives a kill.
 */
export interface Gateway {
  /** null: this node sends no notifications and ignores push settings in messages. */
  readonly push: PushConfigs | null
  /**
   * Begins a task, or continues the task that the message names. The same message of one caller runs once.
   * @throws NodeError TASK_NOT_FOUND, CONFLICT (the task expects no message), INVALID_INPUT (another message had its
   * id), AGENT_NOT_FOUND, CAPABILITY_NOT_FOUND, OVERLOADED, and refusals of the rules
   */
  send(by: Principal, request: GatewaySend): Promise<GatewayReply>
  /** @throws NodeError TASK_NOT_FOUND */
  get(by: Principal, id: string, options?: WithTurn): Promise<GatewaySnapshot>
  /** Is a task one of that agent, by its name as in {@link GatewaySend}? A look-up. @throws NodeError TASK_NOT_FOUND */
  isOf(by: Principal, id: string, agentName: string): boolean
  /** The newest change of state first. `agentName`: as in {@link GatewaySend}. */
  list(by: Principal, filter: TaskFilter & { readonly agentName?: string }, page: GatewayPaging): Promise<GatewayPage>
  /**
   * Resolves when it is canceled, early when the signal aborts.
   * @throws NodeError TASK_NOT_FOUND, CONFLICT when it has ended
   */
  cancel(by: Principal, id: string, options?: GatewayCancel): Promise<GatewaySnapshot>
  /**
   * Events of a task after a generation, without a gap. It ends when the task ends (or rests, with `untilRest`),
   * expires, or the signal aborts.
   * @throws NodeError TASK_NOT_FOUND
   */
  follow(by: Principal, id: string, options: GatewayFollow): AsyncIterable<GatewayEvent>
}

/** Why an agent's output is kept from its client. */
export interface OutputViolation {
  readonly words: string
  /** Details of the rule, never of the text. JSON. */
  readonly details: object
}

/** Rules for the output of agents to clients of the gateway. Total. */
export interface OutputRules {
  /** Must the whole output be known before any of it is sent? */
  readonly holdsBack: boolean
  /** Characters of a JSON value that count. */
  lengthOf(value: unknown): number
  tooLong(length: number): OutputViolation | null
  /** By a pattern alone, however long it is. */
  denied(value: unknown): OutputViolation | null
  violation(value: unknown): OutputViolation | null
}

/** How a task is canceled. */
export interface GatewayCancel extends WithTurn {
  readonly signal?: AbortSignalLike
}

/** How a task is followed. */
export interface GatewayFollow extends WithTurn {
  readonly after: number
  readonly untilRest?: boolean
  readonly signal?: AbortSignalLike
}
