import { asNodeError } from '../kit/errors.js'
import { tierText } from '../domain/routing/tier.js'
import type { MemberLog } from '../ports/mesh.js'
import type { Principal } from '../ports/node-api.js'
import { CardStore, type OriginalCards } from '../adapters/a2a/cards/card-store.js'
import { type CardService, createCardService } from '../adapters/a2a/cards/card-routes.js'
import type { CardOAuth } from '../adapters/a2a/cards/card-subject.js'
import { CardSigner } from '../adapters/a2a/cards/card-signature.js'
import type { OpenedOAuth } from './open-oauth.js'
import type { GatewayDeps } from './open-gateway.js'
import { VERSION } from './version.js'

/** Opens the A2A cards of a node, kept current while it runs. */
export function openCards(
  { options, clock, telemetry, unwind, own, base, grpc, limit, apiFor }: GatewayDeps,
  oauth: OpenedOAuth | null
): CardService {
  const { log, membership, sign, settings } = own
  const host = {
    base,
    grpc,
    ...(options.config.a2a.mesh ? { meshNode: membership.nodeId } : {}),
    meshInterface: options.config.a2a.meshInterface,
    pushNotifications: true,
    version: VERSION,
    clock,
    ...(settings.provider === null ? {} : { provider: settings.provider }),
    ...(oauth === null ? {} : { oauth: cardOAuth(oauth) })
  }
  const signer = new CardSigner({
    sign,
    nodeId: membership.nodeId,
    keysUrl: base === null ? null : `${base}/.well-known/jwks.json`
  })
  const store = new CardStore({
    host,
    clock,
    signer,
    api: apiFor(everybody(membership.certificate().body.sandboxId ?? null)),
    originals: originalsOf(log),
    onFault: (error) => {
      const { code, message: reason } = asNodeError(error)
      telemetry.log('warn', 'cards could not be made', { code, reason })
    }
  })
  unwind.add('cards', () => Promise.resolve(store.close()))
  // The first two limits are shared by all callers, the others are per caller.
  const limits = (by: Principal): Record<string, number> => ({
    maxConnections: options.config.http.maxConnections,
    maxTasksInFlight: settings.maxInFlight,
    ...limit.left(by)
  })
  return createCardService({ ...host, signer, store, apiFor, limits })
}

/** The cards of members as they signed them. */
function originalsOf(log: MemberLog): OriginalCards {
  return {
    find: (nodeId, agentId) => log.view().cards.get(nodeId)?.get(agentId) ?? null,
    onChange: (listener) => log.onChange(listener)
  }
}

/** The OAuth server on cards, with the rights of each scope. */
function cardOAuth({ issuer, scopes }: OpenedOAuth): CardOAuth {
  const words = Object.entries(scopes).map(([name, { may, tier, capabilities }]) => [
    name,
    [
      ...may,
      ...(tier === null ? [] : [`at most ${tierText(tier)}`]),
      ...(capabilities === null ? [] : [`only ${capabilities.join(', ')}`])
    ].join('; ')
  ])
  return { issuer, scopes: Object.fromEntries(words) }
}

/** The principal of callers without a token: reads with the rights of the weakest tier. */
function everybody(sandboxId: string | null): Principal {
  return { kind: 'token', name: 'everybody', tier: 3, sandboxId, scopes: ['read'] }
}
