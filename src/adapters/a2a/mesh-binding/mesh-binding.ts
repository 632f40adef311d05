import { MAX_CALL_ANSWER_BYTES } from '../../../domain/channel/call.js'
import { tierFromText } from '../../../domain/routing/tier.js'
import { utf8 } from '../../../kit/ids.js'
import type { Gateway } from '../../../ports/gateway.js'
import type { AnswerItem, CallAnswer, CallHandler, MemberCall } from '../../../ports/member-calls.js'
import type { Principal } from '../../../ports/node-api.js'
import { A2AFault, faultOf } from '../server/fault.js'
import { agentPath } from '../server/gateway-target.js'
import { callRpc, type RpcId, rpcJson, rpcOperation } from '../server/json-rpc.js'
import { atTenant, type Caller, type StreamItem } from '../server/operations.js'
import {
  activatedExtensions,
  checkRequired,
  type OfferedExtension,
  requestedVersion
} from '../server/service-params.js'

/** Service parameters of the binding: the agent for which a member calls. */
export const MESH_PARAMETERS = { agent: 'a2a-mesh-agent', tier: 'a2a-mesh-tier', sandbox: 'a2a-mesh-sandbox' } as const

/** Dependencies of {@link meshCallHandler}. */
export interface MeshBindingDeps {
  readonly gateway: Gateway
  /** A member as a caller, by its claims, limited to its own power. @throws NodeError */
  principalOf(
    peer: string,
    claims: { readonly agent?: string; readonly tier?: 0 | 1 | 2 | 3; readonly sandboxId?: string }
  ): Principal
  /** The extensions on the card of an agent, or of the node. */
  extensions(agent: string | null): readonly OfferedExtension[]
  readonly extendedCard: Caller['extendedCard']
}

/** Makes the JSON-RPC handler of the gateway for calls of members over their links. */
export function meshCallHandler(deps: MeshBindingDeps): CallHandler {
  return async (call) => {
    try {
      const source = { headers: call.parameters, query: '' }
      const here = callerOf(deps, call)
      const { id, given } = await callRpc(call.body, (method, params) => {
        const operation = rpcOperation(method, requestedVersion(source))
        const caller = atTenant(here, params)
        const offered = deps.extensions(caller.agent)
        checkRequired(offered, activatedExtensions(source, offered)?.uris ?? [])
        return operation(params, caller)
      })
      return 'items' in given ? streamOf(id, given.items) : { body: () => bounded(id, jsonBytes(rpcJson(id, given))) }
    } catch (error) {
      return { body: () => faultBytes(null, error) }
    }
  }
}

function callerOf(deps: MeshBindingDeps, call: MemberCall): Caller {
  const { peer, path, parameters, signal } = call
  const agent = agentOf(path)
  const by = deps.principalOf(peer, claimsOf(parameters))
  return {
    gateway: readInTurn(deps.gateway, call),
    by,
    agent,
    signal,
    lastEventId: parameters['last-event-id'],
    extendedCard: deps.extendedCard
  }
}

/** The gateway for one call. Reads of tasks wait for their turn, since contents may be large. */
function readInTurn(gateway: Gateway, { turn }: Pick<MemberCall, 'turn'>): Gateway {
  return {
    push: gateway.push,
    send: (by, request) => gateway.send(by, { ...request, turn }),
    get: (by, id) => gateway.get(by, id, { turn }),
    isOf: (by, id, agentName) => gateway.isOf(by, id, agentName),
    list: (by, filter, page) => gateway.list(by, filter, { ...page, turn }),
    cancel: (by, id, options) => gateway.cancel(by, id, { ...options, turn }),
    follow: (by, id, options) => gateway.follow(by, id, { ...options, turn })
  }
}

function agentOf(path: string): string | null {
  if (path === '/a2a') return null
  const place = path.startsWith('/agents/') ? agentPath(path, '/agents/') : null
  if (place === null || place.path !== '') throw new A2AFault('METHOD_NOT_FOUND', 'there is nothing at this path')
  return place.agent
}

function claimsOf(parameters: MemberCall['parameters']): Parameters<MeshBindingDeps['principalOf']>[1] {
  const {
    [MESH_PARAMETERS.agent]: agent,
    [MESH_PARAMETERS.tier]: tierText,
    [MESH_PARAMETERS.sandbox]: sandboxId
  } = parameters
  const tier = tierText === undefined ? null : tierFromText(tierText)
  if (tierText !== undefined && tier === null)
    throw new A2AFault('INVALID_PARAMS', `${MESH_PARAMETERS.tier}: is no tier`)
  return {
    ...(agent === undefined ? {} : { agent }),
    ...(tier === null ? {} : { tier }),
    ...(sandboxId === undefined ? {} : { sandboxId })
  }
}

function streamOf(id: RpcId, items: AsyncIterable<StreamItem>): CallAnswer {
  return { items: encoded(id, items), faultBody: (error) => faultBytes(id, error) }
}

async function* encoded(id: RpcId, items: AsyncIterable<StreamItem>): AsyncIterable<AnswerItem> {
  for await (const { id: generation, value } of items)
    yield { generation, body: () => jsonBytes(rpcJson(id, { value })) }
}

function bounded(id: RpcId, body: Uint8Array): Uint8Array {
  if (body.byteLength <= MAX_CALL_ANSWER_BYTES) return body
  const message = `the answer has ${body.byteLength} bytes, and the binding carries ${MAX_CALL_ANSWER_BYTES}: ask for less, or for a stream`
  return faultBytes(id, new A2AFault('UNSUPPORTED_OPERATION', message))
}

function faultBytes(id: RpcId, error: unknown): Uint8Array {
  return jsonBytes(rpcJson(id, { fault: faultOf(error) }))
}

function jsonBytes(value: object): Uint8Array {
  return utf8(JSON.stringify(value))
}
