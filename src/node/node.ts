import type { AttachOptions, AttachedAgent } from './agents/in-process-agents.js'
import type { LedgerQuota } from './ledger/quota.js'
import { MembershipAudit, MemberSync } from './peers/member-sync.js'
import { Orphans, Purge, Recovery } from './requests/recovery.js'
import type { NodeDeps } from './dependencies.js'
import { serveApprovals } from './api/machine-approvals.js'
import { PeerDispatch } from './peer-dispatch.js'
import { controlHandlers, peerListeners } from './peer-listeners.js'
import { createPipelines } from './pipelines.js'
import type { Pipelines } from './pipelines.js'
import { createServices } from './services.js'
import type { Services } from './services.js'

/** The use cases of one node, wired together, as the implementations of `NodeApi` use them. */
export interface NodeCore extends Services, Pipelines {
  readonly deps: NodeDeps
  readonly orphans: Orphans
  start(): Promise<void>
  close(): Promise<void>
  /** Makes a program of this process an agent of the node. @throws NodeError USAGE (id taken), INVALID_CARD. */
  attach(options: AttachOptions): Promise<AttachedAgent>
}

/** Wires the use cases. Nothing runs before `start`. */
export function createNode(deps: NodeDeps): NodeCore {
  const tables = createServices(deps)
  const pipelines = createPipelines(deps, tables)
  const core = { ...tables, ...pipelines, orphans: new Orphans({ ...deps, ...tables, ...pipelines }) }
  const controls = controlHandlers(core)
  const parts: NodeParts = {
    ...core,
    members: new MemberSync({ ...deps, ...tables }),
    changes: new MembershipAudit({ ...deps, ...tables }),
    messages: new PeerDispatch({ ...core, listeners: peerListeners({ ...deps, ...core }), controls }),
    recovery: new Recovery({ ...deps, ...core }),
    guards: [core.ledgerQuota, core.orphans, new Purge({ ...deps, ...core })]
  }
  serveApprovals({ deps, ...core })
  return {
    deps,
    ...core,
    attach: (options) => core.inProcess.attach(options),
    start: () => startParts(parts),
    close: () => closeParts(parts)
  }
}

interface NodeParts extends Services, Pipelines {
  readonly members: MemberSync
  readonly changes: MembershipAudit
  readonly messages: PeerDispatch
  readonly recovery: Recovery
  readonly guards: readonly (LedgerQuota | Orphans | Purge)[]
}

async function startParts(parts: NodeParts): Promise<void> {
  const { agents, approvals, cardGossip, changes, executor, guards, lanes, localCards, members } = parts
  const { messages, peers, policy, presence, recovery, requests, swarms } = parts
  policy.start(() => approvals.onPolicy())
  await parts.tokens.open().then(() => changes.start())
  await Promise.all([localCards.start(), parts.providers.load()]).then(() =>
    agents.start(
      () => cardGossip.refreshSoon(),
      () => cardGossip.healthChanged()
    )
  )
  await cardGossip.refresh()
  members.start({
    onCertificate: () => void cardGossip.refreshSoon(),
    onView: () => localCards.publish(),
    onRevoked: (peer) => [requests, approvals, executor].forEach((part) => part.onRevoked(peer))
  })
  await lanes.open()
  await recovery.resume(members.putOut()).then(() => swarms.resume())
  for (const part of [...guards, lanes, executor, requests, swarms]) part.start()
  await peers.start(messages)
  await recovery.start().then(() => parts.documents.start())
  presence.start()
  parts.trust.start()
}

async function closeParts(parts: NodeParts): Promise<void> {
  const { approvals, executor, guards, lanes, members, messages, negotiations } = parts
  const { peers, presence, recovery, requests, swarms } = parts
  await Promise.all([parts.channels.closeAll(), parts.documents.close(), parts.tokens.close()])
  for (const part of [...guards, recovery, messages, members, presence, approvals, swarms, requests]) await part.stop()
  for (const part of [executor, negotiations, lanes, peers]) await part.stop()
  for (const part of [parts.trust, parts.policy, parts.localCards, parts.cardGossip, parts.outbound, parts.exchanges])
    part.close()
  await Promise.all([parts.agents.close(), parts.changes.stop(), parts.providers.close()])
}
