import { addressPolicy } from './remote-net.js'
import type { CardService } from '../adapters/a2a/cards/card-routes.js'
import { guardedGateway, Guardrails } from '../adapters/a2a/server/guardrails.js'
import { meshCallHandler } from '../adapters/a2a/mesh-binding/mesh-binding.js'
import { meshUrl } from '../adapters/a2a/mesh-binding/mesh-uri.js'
import { OAuthStore } from '../adapters/a2a/oauth/oauth-store.js'
import { createWebhooks } from '../adapters/a2a/push/webhook-sender.js'
import type { Tokens } from '../node/access/tokens.js'
import type { Directory } from '../node/cards/directory.js'
import type { LinkCalls } from '../node/gateway/mesh/calls.js'
import { TaskService, type TaskServiceDeps } from '../node/gateway/task-service.js'
import { OwnerDirectory } from '../node/gateway/caller.js'
import { memberPrincipal } from '../node/gateway/resolve-agent.js'
import type { Gateway, KnownClients } from '../ports/gateway.js'
import type { ContextStore } from '../ports/task-api.js'
import type { PushAdmin } from '../ports/push-api.js'
import type { Webhooks } from '../ports/webhooks.js'
import type { GatewayDeps } from './open-gateway.js'
import type { StartDeps } from './open-home.js'

/** The task services for A2A clients over HTTP and the mesh. */
export interface OpenedTasks {
  readonly gateway: Gateway
  readonly guardrails: Guardrails
  /** The gateway behind the guardrails. */
  readonly guarded: Gateway
  readonly push: PushAdmin | null
  readonly contexts: ContextStore
}

/**
 * Opens the tasks of A2A clients and resumes them. `known`: clients of the OAuth server; null: it does not serve.
 * @throws NodeError STORE_DAMAGED
 */
export async function openTasks(
  deps: GatewayDeps,
  node: TaskServiceDeps & { readonly tokens: Tokens },
  known: KnownClients | null
): Promise<OpenedTasks> {
  const guardrails = new Guardrails(deps.options.config.a2a.guardrails)
  const owners = new OwnerDirectory({
    tokens: node.tokens,
    log: deps.own.log,
    clients: known ?? (await keptClients(deps))
  })
  const gateway = new TaskService(node, { push: { webhooks: openWebhooks(deps), owners }, rules: guardrails.output })
  await gateway.start()
  deps.unwind.add('A2A gateway', async () => gateway.stop())
  const guarded = guardedGateway(gateway, guardrails)
  return { gateway, guardrails, guarded, push: gateway.push?.admin ?? null, contexts: gateway.contexts }
}

/** Stored OAuth clients, while the OAuth server does not serve. */
async function keptClients({ clock, own }: GatewayDeps): Promise<KnownClients> {
  const store = new OAuthStore(own.store, clock)
  await store.open()
  return store.known
}

function openWebhooks({ options, clock, own, base }: GatewayDeps): Webhooks {
  const { sign, ids, membership } = own
  return createWebhooks({
    clock,
    policy: addressPolicy(options.config),
    signer: { sign, ids, nodeId: membership.nodeId, issuer: base ?? meshUrl(membership.nodeId, '/a2a') }
  })
}

interface MeshBindingParts {
  readonly directory: Directory
  readonly memberCalls: LinkCalls
  readonly tasks: OpenedTasks
  /** Makes the cards at the first request. */
  cards(): Pick<CardService, 'extended' | 'extensions'>
}

/** Serves calls of members over their links from now on. */
export function openMeshBinding(
  { unwind, clock }: StartDeps,
  { directory, memberCalls, tasks, cards }: MeshBindingParts
): void {
  const stop = memberCalls.serve(
    meshCallHandler({
      gateway: tasks.guarded,
      principalOf: (peer, claims) => memberPrincipal({ directory, clock }, peer, claims),
      extensions: (agent) => cards().extensions(agent),
      extendedCard: (principal, agent, version) =>
        cards().extended(agent, { form: version === '1.0' ? 'one' : 'hybrid', principal })
    })
  )
  unwind.add('A2A over the mesh', async () => stop())
}
