import { allowedHost } from '../adapters/a2a/net/address-guard.js'
import type { CardService } from '../adapters/a2a/cards/card-routes.js'
import { guardedGateway, Guardrails } from '../adapters/a2a/server/guardrails.js'
import { meshCallHandler } from '../adapters/a2a/mesh-binding/mesh-binding.js'
import { meshUrl } from '../adapters/a2a/mesh-binding/mesh-uri.js'
import { OAuthStore } from '../adapters/a2a/oauth/oauth-store.js'
import { createWebhooks } from '../adapters/a2a/push/webhook-sender.js'
import { TaskService } from '../node/gateway/task-service.js'
import { OwnerDirectory } from '../node/gateway/caller.js'
import { memberPrincipal } from '../node/gateway/resolve-agent.js'
import type { NodeCore } from '../node/node.js'
import type { Gateway, KnownClients } from '../ports/gateway.js'
import type { PushAdmin } from '../ports/push-api.js'
import type { Webhooks } from '../ports/webhooks.js'
import type { GatewayDeps } from './open-gateway.js'
import type { StartDeps } from './open-home.js'

/** The tasks of A2A clients, however they are reached. */
export interface OpenedTasks {
  readonly gateway: Gateway
  readonly guardrails: Guardrails
  /** The gateway behind the guardrails. */
  readonly guarded: Gateway
  readonly push: PushAdmin | null
}

/** The tasks of A2A clients: they go on where they were. `known`: clients of the OAuth server; null: it does not serve. @throws NodeError STORE_DAMAGED */
export async function openTasks(deps: GatewayDeps, node: NodeCore, known: KnownClients | null): Promise<OpenedTasks> {
  const guardrails = new Guardrails(deps.options.config.a2a.guardrails)
  const owners = new OwnerDirectory({ tokens: node.tokens, log: deps.own.log, clients: known ?? (await keptClients(deps)) })
  const gateway = new TaskService(node, { push: { webhooks: openWebhooks(deps), owners }, rules: guardrails.output })
  await gateway.start()
  deps.unwind.add('A2A gateway', async () => gateway.stop())
  return { gateway, guardrails, guarded: guardedGateway(gateway, guardrails), push: gateway.push?.admin ?? null }
}

/** Those that there are while the OAuth server does not serve. */
async function keptClients({ clock, own }: GatewayDeps): Promise<KnownClients> {
  const store = new OAuthStore(own.store, clock)
  await store.open()
  return store.known
}

function openWebhooks({ options, clock, own, base }: GatewayDeps): Webhooks {
  const { sign, ids, membership } = own
  return createWebhooks({
    clock,
    policy: { allowed: options.config.a2a.allowPrivate.flatMap((text) => allowedHost(text) ?? []) },
    signer: { sign, ids, nodeId: membership.nodeId, issuer: base ?? meshUrl(membership.nodeId, '/a2a') }
  })
}

/** Takes calls of members over their links from now on. `cards`: made when one is asked for. */
export function openMeshBinding(
  { unwind }: StartDeps,
  { node, tasks, cards }: { readonly node: NodeCore; readonly tasks: OpenedTasks; cards(): Pick<CardService, 'extended' | 'extensions'> }
): void {
  const stop = node.memberCalls.serve(
    meshCallHandler({
      gateway: tasks.guarded,
      principalOf: (peer, claims) => memberPrincipal(node, peer, claims),
      extensions: (agent) => cards().extensions(agent),
      extendedCard: (principal, agent, version) => cards().extended(agent, { form: version === '1.0' ? 'one' : 'hybrid', principal })
    })
  )
  unwind.add('A2A over the mesh', async () => stop())
}
