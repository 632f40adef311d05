import type { AttachOptions, AttachedAgent } from './agents/in-process-agents.js'
import { MemberChanges } from './peers/membership-audit.js'
import { Members } from './peers/member-sync.js'
import { Orphans } from './requests/orphans.js'
import type { NodeParts } from './dependencies.js'
import { PeerMessages } from './peer-dispatch.js'
import { Recovery } from './requests/recovery.js'
import { createPipelines } from './pipelines.js'
import type { Pipelines } from './pipelines.js'
import { createTables } from './services.js'
import type { Tables } from './services.js'

/** The use cases of one node, wired together. `NodeApi` bodies speak to this. */
export interface NodeCore extends Tables, Pipelines {
  readonly parts: NodeParts
  readonly orphans: Orphans
  start(): Promise<void>
  close(): Promise<void>
  /** Makes a program of this process an agent of the node. @throws NodeError USAGE (id taken), INVALID_CARD. */
  attach(options: AttachOptions): Promise<AttachedAgent>
}

/** Wires the use cases. Nothing runs before `start`. */
export function createNode(parts: NodeParts): NodeCore {
  const tables = createTables(parts)
  const pipelines = createPipelines(parts, tables)
  const orphans = new Orphans({ ...tables, ...pipelines, clock: parts.clock, telemetry: parts.telemetry })
  const core = { ...tables, ...pipelines, orphans }
  const { agents, approvals, channels, conversations, lanes, negotiations, cardGossip: news } = core
  const { outbox, ownCards, peers, policy, presence, requests, swarms, work } = core
  const [members, changes] = [new Members({ ...parts, ...tables }), new MemberChanges({ ...parts, ...tables })]
  const messages = new PeerMessages({ ...core, telemetry: parts.telemetry, links: parts.links })
  const recovery = new Recovery({ ...parts, ...core })
  const guards = [core.ledgerQuota, orphans]
  const stopped = [...guards, recovery, messages, members, presence, approvals, swarms, requests, work, negotiations, lanes, peers]
  return {
    parts,
    ...core,
    attach: (options) => core.attached.attach(options),
    start: async () => {
      policy.start(() => approvals.onPolicy())
      await core.tokens.open().then(() => changes.start())
      await ownCards.start().then(() => agents.start(() => news.refreshSoon()))
      await news.refresh()
      members.start({
        onCertificate: () => news.refreshSoon(),
        onView: () => ownCards.publish(),
        onRevoked: (peer) => [requests, approvals, work].forEach((part) => part.onRevoked(peer))
      })
      await lanes.open().then(() => recovery.resume(members.putOut()))
      for (const part of [...guards, lanes, work, requests, swarms]) part.start()
      await peers.start(messages)
      await recovery.start().then(() => core.documents.start())
      presence.start()
    },
    close: async () => {
      await Promise.all([channels.closeAll(), core.documents.close(), core.tokens.close()])
      for (const part of stopped) await part.stop()
      for (const part of [policy, ownCards, news, outbox, conversations]) part.close()
      await Promise.all([agents.close(), changes.stop()])
    }
  }
}
