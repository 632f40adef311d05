import type { AttachOptions, AttachedAgent } from './agents/in-process-agents.js'
import { MembershipAudit, MemberSync } from './peers/member-sync.js'
import { Orphans, Purge, Recovery } from './requests/recovery.js'
import type { NodeDeps } from './dependencies.js'
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
  const { agents, approvals, channels, exchanges, lanes, negotiations, cardGossip } = core
  const { outbound, localCards, peers, policy, presence, requests, swarms, executor } = core
  const [members, changes] = [new MemberSync({ ...deps, ...tables }), new MembershipAudit({ ...deps, ...tables })]
  const messages = new PeerDispatch({ ...core, listeners: peerListeners({ ...deps, ...core }), controls: controlHandlers(core) })
  const recovery = new Recovery({ ...deps, ...core })
  const guards = [core.ledgerQuota, core.orphans, new Purge({ ...deps, ...core })]
  const stopped = [...guards, recovery, messages, members, presence, approvals, swarms, requests, executor, negotiations, lanes, peers]
  return {
    deps,
    ...core,
    attach: (options) => core.inProcess.attach(options),
    start: async () => {
      policy.start(() => approvals.onPolicy())
      await core.tokens.open().then(() => changes.start())
      await localCards.start().then(() => agents.start(() => cardGossip.refreshSoon()))
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
      await recovery.start().then(() => core.documents.start())
      presence.start()
    },
    close: async () => {
      await Promise.all([channels.closeAll(), core.documents.close(), core.tokens.close()])
      for (const part of stopped) await part.stop()
      for (const part of [policy, localCards, cardGossip, outbound, exchanges]) part.close()
      await Promise.all([agents.close(), changes.stop()])
    }
  }
}
