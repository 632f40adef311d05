import type { IncomingMessage, ServerResponse } from 'node:http'
import { asNodeError, NodeError } from '../../../kit/errors.js'
import type { Clock } from '../../../kit/clock.js'
import { shown } from '../../../kit/text.js'
import type { NodeApi, Principal } from '../../../ports/node-api.js'
import { answerDocument, answerFresh, prepare, type PreparedDocument } from './card-answer.js'
import type { CardStore, CardEntry } from './card-store.js'
import { pathIdFrom } from './card-interfaces.js'
import type { CardSigner } from './card-signature.js'
import { agentSubject, type CardHost, rootSubject } from './card-subject.js'
import { type CallerLimits, USAGE_MAX_TASKS, usageExtension } from './card-usage.js'
import { gatewayFault } from '../server/gateway-target.js'
import { type ListenerError, restError } from '../server/listener-fault.js'
import type { HybridCard } from './card-v03.js'
import type { CardV1 } from './card-v1.js'
import { type OfferedExtension, versionText } from '../server/service-params.js'

/** The form of a card: that of 1.0, or the hybrid for all other clients. */
export type CardForm = 'one' | 'hybrid'

/** Dependencies of the card routes. */
export interface CardRouteDeps extends CardHost {
  readonly store: CardStore
  readonly signer: CardSigner
  readonly clock: Clock
  readonly version: string
  apiFor(principal: Principal): NodeApi
  /** The limits of a caller at this node now. */
  limits(by: Principal): CallerLimits
}

type PublicHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  call: { readonly path: string; readonly query: string }
) => unknown
type TokenHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  call: { readonly path: string; readonly query: string; readonly principal: Principal }
) => unknown

type CardPlace = { readonly path: string } | { readonly prefix: string; readonly suffix: string }

/** A route of the HTTP listener; `prefix` and `suffix` match paths with one segment between them. */
export type CardRoute = CardPlace & {
  readonly methods: readonly string[]
  /** Encodes an error of the listener as the body of its answer. */
  readonly errorBody?: (
    error: ListenerError,
    request: { readonly method: string; readonly path: string }
  ) => object | null
} & (
    | { readonly isPublic: true; readonly handle: PublicHandler }
    | { readonly isPublic?: false; readonly handle: TokenHandler }
  )

/** The cards of a node over HTTP. */
export interface CardService {
  readonly routes: readonly CardRoute[]
  /**
   * The card for authenticated callers: the public card and current usage counts. `pathId` null: of the node.
   * @throws NodeError AGENT_NOT_FOUND, FORBIDDEN
   */
  extended(
    pathId: string | null,
    asked: { readonly form: CardForm; readonly principal: Principal }
  ): Promise<CardV1 | HybridCard>
  /** The extensions of the public card; empty for an agent without a card here. */
  extensions(pathId: string | null): readonly OfferedExtension[]
}

const METHODS: readonly string[] = ['GET', 'HEAD']
const NAMES = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const
const STATUS: Readonly<Record<string, number>> = {
  AGENT_NOT_FOUND: 404,
  FORBIDDEN: 403,
  SANDBOX_VIOLATION: 403,
  NODE_NOT_RUNNING: 503
}

/** The card form for a requested version; clients before 1.0 name none. */
export function cardForm(text: string): CardForm {
  const major = /^\s*(\d{1,3})(?!\d)/.exec(text)?.[1]
  return major === undefined || Number(major) === 0 ? 'hybrid' : 'one'
}

/** Makes the routes: the well-known ones without a token, the extended card behind one. */
export function createCardService(deps: CardRouteDeps): CardService {
  const keys = prepare(deps.signer.keySet(), deps.clock.now())
  const extended: CardService['extended'] = (pathId, asked) => extendedCard(deps, { pathId, ...asked })
  const open = { methods: METHODS, isPublic: true, errorBody: restError } as const
  const agentRoute = (prefix: string, suffix: string): CardRoute => {
    const handle = publicCard(deps.store, (path) => idIn(path, { prefix, suffix }))
    return { prefix, suffix, ...open, handle }
  }
  const extendedPlace = { prefix: '/a2a/', suffix: '/card' }
  return {
    extended,
    extensions: (pathId) => deps.store.find(pathId)?.extensions ?? [],
    routes: [
      ...NAMES.map((path): CardRoute => ({ path, ...open, handle: publicCard(deps.store, () => null) })),
      ...NAMES.flatMap((suffix) => [agentRoute('/agents/', suffix), agentRoute('/a2a/', suffix)]),
      {
        path: '/.well-known/jwks.json',
        ...open,
        handle: (request, response) => answerDocument(request, response, keys)
      },
      {
        ...extendedPlace,
        methods: METHODS,
        errorBody: gatewayFault,
        handle: extendedCardAt(extended, (path) => idIn(path, extendedPlace))
      },
      // REST of 0.3 below the URL of the node, not an agent called `v1`.
      { path: '/a2a/v1/card', methods: METHODS, errorBody: gatewayFault, handle: extendedCardAt(extended, () => null) }
    ]
  }
}

/** The agent that a path names: null: the node, undefined: not encoded correctly. */
type PathIdOf = (path: string) => string | null | undefined

function publicCard(store: CardStore, idOf: PathIdOf): PublicHandler {
  return (request, response, { path, query }) =>
    guarded(response, async () => {
      const form = cardForm(versionText({ headers: request.headers, query }))
      answerDocument(request, response, await preparedOf(store, { pathId: idOf(path), form }))
    })
}

function extendedCardAt(extended: CardService['extended'], idOf: PathIdOf): TokenHandler {
  return (request, response, { path, query, principal }) =>
    guarded(response, async () => {
      const pathId = idOf(path)
      if (pathId === undefined) throw unknownAgent('')
      const form = cardForm(versionText({ headers: request.headers, query }))
      answerFresh(response, 200, await extended(pathId, { form, principal }))
    })
}

/** Undefined when the segment is not encoded correctly. */
function idIn(
  path: string,
  { prefix, suffix }: { readonly prefix: string; readonly suffix: string }
): string | undefined {
  return pathIdFrom(path.slice(prefix.length, -suffix.length)) ?? undefined
}

async function preparedOf(
  store: CardStore,
  { pathId, form }: { readonly pathId: string | null | undefined; readonly form: CardForm }
): Promise<PreparedDocument> {
  if (pathId === undefined) throw unknownAgent('')
  return (await entryOf(store, pathId))[form]
}

async function entryOf(store: CardStore, pathId: string | null): Promise<CardEntry> {
  if (!store.isOpen) await store.ready
  const entry = store.find(pathId)
  if (entry !== null) return entry
  if (store.isOpen) throw unknownAgent(pathId ?? '')
  throw new NodeError('NODE_NOT_RUNNING', 'the cards of this node are not there yet')
}

async function extendedCard(
  { store, signer, apiFor, limits, ...common }: CardRouteDeps,
  {
    pathId,
    form,
    principal
  }: { readonly pathId: string | null; readonly form: CardForm; readonly principal: Principal }
): Promise<CardV1 | HybridCard> {
  const { agent: known, original } = await entryOf(store, pathId)
  // A peer reads the card over the mesh.
  const host = principal.kind === 'peer' ? { ...common, meshInterface: true } : common
  // It must ask the node of the agent directly.
  if (principal.kind === 'peer' && known !== null && known.node.id !== host.meshNode) throw unknownAgent(pathId ?? '')
  const api = apiFor(principal)
  const [tasks, agent] = await Promise.all([
    api.call('tasks.list', { limit: USAGE_MAX_TASKS }),
    known === null ? null : api.call('agents.show', { agent: `${known.id}@${known.node.id}` })
  ])
  const subject = agent === null ? await nodeOf(api, host) : agentSubject(agent, original, host)
  const extensions = [...subject.extensions, usageExtension(tasks, { agent, limits: limits(principal) })]
  return signer.cards({ ...subject, extensions })[form]
}

/** The card content at the root, with the agents visible to this caller. */
async function nodeOf(
  api: NodeApi,
  host: CardHost & { readonly version: string }
): Promise<ReturnType<typeof rootSubject>> {
  const [info, { agents }] = await Promise.all([api.call('node.info', {}), api.call('agents.list', {})])
  const details = await Promise.all(
    agents.map(({ id, node }) => api.call('agents.show', { agent: `${id}@${node.id}` }))
  )
  return rootSubject(info, details, host)
}

/** Runs it and answers known errors in the form of the protocol. */
async function guarded(response: ServerResponse, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    const { code, message } = asNodeError(error)
    const status = STATUS[code]
    // The listener handles unexpected errors.
    if (status === undefined) throw error
    answerFresh(response, status, restError({ status, code, message }))
  }
}

function unknownAgent(name: string): NodeError {
  return new NodeError('AGENT_NOT_FOUND', name === '' ? 'no such agent' : `no agent "${shown(name)}" is served here`)
}
