import type { Clock } from '../../../kit/clock.js'
import { messageOf } from '../../../kit/errors.js'
import { canonicalJson, isRecord, parseJson } from '../../../kit/json.js'
import { shellWord } from '../../../kit/text.js'
import { type AddressPolicy, judgeAddress } from '../net/address-guard.js'
import { meshCard } from '../mesh-binding/mesh-card.js'
import { meshFetch, type MeshReach } from '../mesh-binding/mesh-client.js'
import { isMeshUrl } from '../mesh-binding/mesh-uri.js'
import {
  type CardRead,
  chosenInterface,
  MAX_REMOTE_CARD_BYTES,
  reachableCard,
  cardWithAddress,
  readRemoteCard,
  type RemoteCard
} from './remote-card.js'
import type { RemoteInterface } from './remote-interfaces.js'
import { type RemoteLink, remoteLink } from './remote-client.js'
import { refusedAddress, RemoteFault } from './remote-fault.js'
import { judgeSignatures } from './remote-signature.js'
import { type FetchLimits, type GuardedFetch, guardedFetch, type Resolve } from '../net/ssrf-fetch.js'

/** Time limit of fetching a card, in milliseconds. */
export const CARD_TIMEOUT_MS = 10_000
/** Silence after which a stream is lost, in milliseconds; heartbeats come four times as often. */
export const STREAM_SILENCE_MS = 60_000
/** Allowance of a response beside its content: JSON escapes some characters as six, and events have extra lines. */
const BODY_FACTOR = 2
const BODY_EXTRA_BYTES = 1_048_576

/** The secret of an agent, and the origins that may receive it. */
export interface RemoteSecret {
  /** Read anew each time. @throws NodeError CONFIG_INVALID when it is missing */
  headers(): Readonly<Record<string, string>>
  /** Origins beside the card's own. */
  readonly origins: readonly string[]
}

/** Address and call settings of a remote agent. */
export interface RemotePlace {
  /** URL of its card or its origin, or the mesh URL of an agent of another member (`a2a-mesh://`). */
  readonly card: string
  /** URL at which its agent is called; absent or null: that of the card. */
  readonly url?: string | null
  /** The calling agent of this node over the mesh; absent: its operator. */
  readonly asker?: string
  readonly secret: RemoteSecret | null
  /** JWK that must verify the card; null: a signature is optional. */
  readonly key: Readonly<Record<string, unknown>> | null
  readonly maxOutputBytes: number
  /** Time limit of a call, in milliseconds. */
  readonly timeoutMs: number
}

/** Network dependencies of remote calls. */
export interface RemoteNet {
  readonly policy: AddressPolicy
  readonly clock: Clock
  readonly resolve?: Resolve
  /** Calls to other members; absent: no mesh. */
  readonly mesh?: MeshReach
}

/** Fetches the card of an agent. @throws RemoteFault when it is missing or unusable */
export async function fetchCard(net: RemoteNet, place: RemotePlace, signal: AbortSignal): Promise<RemoteCard> {
  if (isMeshUrl(place.card)) return await fetchMeshCard(net, place, signal)
  const { text, url } = await fetchCardText(net, place, signal)
  const parsed = parseJson(text)
  if (!parsed.ok) throw new RemoteFault('answered', `its card is not to be read: ${parsed.reason}`)
  const read = readRemoteCard(cardWithAddress(parsed.value, place.url ?? null))
  if (!read.ok) throw unusableCard(read, url)
  await checkSignature(parsed.value, place.key)
  const card = reachableCard(read.card, url)
  checkPlace(net, place, card)
  return card
}

/** Fetches the text of a card over the web. `url`: where it was. @throws RemoteFault */
export async function fetchCardText(
  net: RemoteNet,
  place: RemotePlace,
  signal: AbortSignal
): Promise<{ readonly text: string; readonly url: string }> {
  const url = cardUrl(place.card)
  const limits = {
    headMs: CARD_TIMEOUT_MS,
    bodyMs: CARD_TIMEOUT_MS,
    silenceMs: CARD_TIMEOUT_MS,
    maxBytes: MAX_REMOTE_CARD_BYTES
  }
  const get = withSecret(guardedFetch({ ...net, limits: { ...limits, maxStreamBytes: MAX_REMOTE_CARD_BYTES } }), place)
  const response = await get(url, { headers: { accept: 'application/json', 'a2a-version': '1.0' }, signal })
  if (response.status !== 200) {
    await response.body?.cancel().catch(() => {})
    throw new RemoteFault('refused', `its card is not there (HTTP ${response.status})`)
  }
  return { text: await response.text(), url }
}

/** Callers of the agent do not see the address. */
function unusableCard({ reason, more, isCard }: Extract<CardRead, { ok: false }>, url: string): RemoteFault {
  if (!isCard) return new RemoteFault('answered', noCard(url))
  const first = `its card is not to be used: ${reason}`
  const place = url.replace(/[?#].*$/s, '')
  const rest = more === 0 ? '' : `, and ${more} more; run a2a-node agents check ${shellWord(place)}`
  return new RemoteFault('answered', first + rest, { printed: first })
}

/** The interface that a card and the config of its agent lead to. */
function reachedInterface({ url = null }: Pick<RemotePlace, 'url'>, card: RemoteCard): RemoteInterface {
  const chosen = chosenInterface(card)
  return url === null ? chosen : { ...chosen, url }
}

/** Makes a client from a card fetched from `place`. @throws RemoteFault when the card leads to a refused address */
export async function connectRemote(net: RemoteNet, place: RemotePlace, card: RemoteCard): Promise<RemoteLink> {
  const maxBytes = place.maxOutputBytes * BODY_FACTOR + BODY_EXTRA_BYTES
  if (isMeshUrl(place.card)) {
    // Only the member of the URL is called, whatever interfaces the stored card names.
    const reached = {
      ...card,
      interfaces: [{ url: place.card, binding: 'JSONRPC', version: '1.0', tenant: '' } as const]
    }
    return await remoteLink(reached, meshFetch(meshOf(net), { agent: place.asker ?? null, maxBytes: maxBytes * 2 }))
  }
  const policy = checkPlace(net, place, card)
  const limits: FetchLimits = {
    // The time of the whole call: an agent without streams answers when it is done.
    headMs: place.timeoutMs,
    bodyMs: place.timeoutMs,
    silenceMs: STREAM_SILENCE_MS,
    maxBytes,
    maxStreamBytes: maxBytes * 2
  }
  return await remoteLink(
    { ...card, interfaces: [reachedInterface(place, card)] },
    withSecret(guardedFetch({ ...net, policy, limits }), place)
  )
}

async function fetchMeshCard(net: RemoteNet, place: RemotePlace, signal: AbortSignal): Promise<RemoteCard> {
  const { card, reached } = await meshCard(meshOf(net), { url: place.card, agent: place.asker ?? null }, signal)
  const read = readRemoteCard(reached)
  if (!read.ok) throw new RemoteFault('answered', `its card is not to be used: ${read.reason}`)
  await checkSignature(card, place.key)
  return read.card
}

function meshOf({ mesh }: RemoteNet): MeshReach {
  if (mesh === undefined) throw new RemoteFault('unsent', 'there is no mesh here')
  return mesh
}

/** Suggests the well-known path, since the URL of an agent is easily mistaken for the URL of its card. */
function noCard(url: string): string {
  const place = url.replace(/[?#].*$/s, '').replace(/\/+$/, '')
  return `what is there is no agent card${place.includes('/.well-known/') ? '' : `: try ${place}/.well-known/agent-card.json`}`
}

/** URL of the card: an address without a path means the well-known path. */
function cardUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  // Else the text is unchanged: the guard judges the text, not the parsed form.
  return url !== null && url.pathname === '/' && url.search === ''
    ? `${text.replace(/\/?$/, '')}/.well-known/agent-card.json`
    : text
}

/**
 * Checks the interface of a card against the origin of the card. A host that the config does not name may not lead to a
 * host that it names, and https may not lead to http. Returns the policy for the interface. @throws RemoteFault for a
 * refused address
 */
export function checkPlace({ policy }: RemoteNet, place: RemotePlace, card: RemoteCard): AddressPolicy {
  const { url } = reachedInterface(place, card)
  // The operator chose this address, so the card has no say in it.
  if ((place.url ?? null) !== null) return checkChosen(url, policy)
  const from = judgeAddress(cardUrl(place.card), policy)
  if (!from.ok) throw refusedAddress(from.reason, 'the address of the card is refused')
  const within = from.isAllowed ? policy : { allowed: [] }
  const to = judgeAddress(url, within)
  if (!to.ok)
    throw refusedAddress(
      `${to.reason}; a2a.agents can name another: url`,
      'its card leads to an address that is refused'
    )
  if (from.url.protocol === 'https:' && to.url.protocol !== 'https:')
    throw new RemoteFault('unsent', 'its card came over https and leads to http')
  return within
}

function checkChosen(url: string, policy: AddressPolicy): AddressPolicy {
  const verdict = judgeAddress(url, policy)
  if (!verdict.ok) throw refusedAddress(verdict.reason, 'the address in the config is refused')
  return policy
}

/** Sends the secret only to the origin of the card and the origins in the config. */
function withSecret(send: GuardedFetch, { card, url: chosen = null, secret }: RemotePlace): GuardedFetch {
  if (secret === null) return send
  const origins = new Set(
    [card, ...(chosen === null ? [] : [chosen]), ...secret.origins].flatMap((one) =>
      URL.canParse(one) ? [new URL(one).origin] : []
    )
  )
  return async (input, init = {}) => {
    const url = input instanceof Request ? input.url : String(input)
    if (!URL.canParse(url) || !origins.has(new URL(url).origin)) return await send(input, init)
    const headers = new Headers(init.headers)
    for (const [name, value] of Object.entries(readSecret(secret))) headers.set(name, value)
    return await send(input, { ...init, headers })
  }
}

function readSecret(secret: RemoteSecret): Readonly<Record<string, string>> {
  try {
    return secret.headers()
  } catch (error) {
    throw new RemoteFault('unsent', messageOf(error))
  }
}

/**
 * Checks the signatures of a card as it is written.
 * @throws RemoteFault for a wrong one, and for a missing one of the key of the config.
 */
export async function checkSignature(card: unknown, key: RemotePlace['key']): Promise<void> {
  if (!isRecord(card) || (card['signatures'] === undefined && key === null)) return
  const text = await canonicalCard(card)
  const verdict = judgeSignatures(card, { text: () => text, key })
  if (verdict !== 'wrong') return
  throw new RemoteFault(
    'answered',
    key === null ? 'the signature of its card is wrong' : 'its card is not signed by the key of the config'
  )
}

/** The signed form of A2A 1.0: it omits empty members by rules that only the client library has. */
async function canonicalCard(card: Readonly<Record<string, unknown>>): Promise<string> {
  const { signatures: _, ...rest } = card
  // 0.3 signs the card unchanged.
  if (!Array.isArray(card['supportedInterfaces'])) return canonicalJson(rest)
  const { canonicalizeAgentCard } = await import('@a2a-js/sdk')
  try {
    return canonicalizeAgentCard(card as never)
  } catch {
    return ''
  }
}
