import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import type { NoiseStream } from 'hyperswarm'
import { startNode, type RunningNode } from '../../src/compose/compose.js'
import { loadConfig } from '../../src/config/load.js'
import { resolveHome } from '../../src/config/paths.js'
import { encodeMessage, type ChannelMessage } from '../../src/domain/channel/frames.js'
import type { ControlName } from '../../src/domain/channel/control.js'
import type { CardBody } from '../../src/domain/card/card.js'
import { encodeEnvelope } from '../../src/domain/envelope/codec.js'
import { SCHEMA_VERSION, type A2AEnvelope } from '../../src/domain/envelope/envelope.js'
import { seal } from '../../src/domain/membership/signing.js'
import type { SignedCard } from '../../src/domain/membership/types.js'
import { keyToText } from '../../src/kit/ids.js'
import type { AuditEvent } from '../../src/ports/audit.js'
import type { Link } from '../../src/ports/mesh.js'
import type { NodeApi } from '../../src/ports/node-api.js'
import { type Lab, type LabNode, meshLab } from '../adapters/mesh/lab.js'
import { eventually } from './agents/eventually.js'
import { cardBody } from './membership.js'
import { tempDir } from './tmp.js'

/** A whole node in this process. */
export interface RealNode {
  readonly id: string
  readonly node: RunningNode
  readonly api: NodeApi
  /** An invite of its own. */
  invite(uses?: number): Promise<string>
  /** What its audit log holds, oldest first. */
  audit(): Promise<AuditEvent[]>
  /** Resolves with the first line of the audit log that fits. */
  onRecord(fits: Partial<AuditEvent>): Promise<AuditEvent>
  counted(name: string, label?: string): Promise<number>
}

/**
 * A member that speaks the real protocol and keeps to none of its rules: everything of the mesh adapter, so it comes in
 * by an invite and through the gate as anybody does, and nothing above it.
 */
export class Eve {
  #ids = 0
  #streams = 1000

  constructor(
    readonly member: LabNode,
    readonly victim: Pick<RealNode, 'id'>
  ) {}

  /** The open link to the victim. */
  link(): Promise<Link> {
    return this.member.seen.link(this.victim.id)
  }

  /** Sends raw frames. */
  async frames(...frames: readonly Uint8Array[]): Promise<void> {
    const link = await this.link()
    for (const frame of frames) link.send(frame)
  }

  /** Sends a message as frames. */
  message(message: ChannelMessage): Promise<void> {
    return this.frames(...encodeMessage(message, () => this.#streams++))
  }

  control(name: ControlName, body: unknown): Promise<void> {
    return this.message({ kind: 'control', name, body })
  }

  /** A request of her operator for `text.stats`, as it would be honest; every field can be replaced. */
  envelope(changes: Partial<A2AEnvelope> = {}): A2AEnvelope {
    const id = `evil_${++this.#ids}`
    return {
      id,
      schemaVersion: SCHEMA_VERSION,
      sender: `operator@${this.member.id}`,
      recipient: `text@${this.victim.id}`,
      type: 'request',
      timestamp: Date.now(),
      payload: {
        requestId: id,
        attempt: 1,
        capability: 'text.stats',
        input: { text: 'x' },
        description: '',
        swarm: null
      },
      ...changes
    }
  }

  send(changes: Partial<A2AEnvelope> = {}): Promise<void> {
    return this.message({ kind: 'envelope', bytes: encodeEnvelope(this.envelope(changes)) })
  }

  /** A card that she signs, honestly or not. */
  card(id: string, changes: Partial<CardBody> = {}): SignedCard {
    return seal('card', cardBody(id, changes), { id: this.member.id, sign: this.member.mesh.sign })
  }

  /** Tells the victim of cards. */
  cards(...cards: readonly unknown[]): Promise<void> {
    return this.control('cards', { cards, all: null })
  }
}

/** A node, an honest member beside it, and Eve, all linked. */
export interface Scene {
  readonly lab: Lab
  readonly victim: RealNode
  readonly bob: RealNode
  readonly eve: Eve
  /** Does the victim still do the work of honest members? */
  isServing(): Promise<boolean>
  /** Starts another node, in a mesh of its own or by an invite. */
  start(name: string, join?: string): Promise<RealNode>
}

/** Sets the scene; everything is gone when the test ends. */
export async function scene(t: Assert): Promise<Scene> {
  const lab = await meshLab(t)
  const root = await tempDir(t)
  const start = (name: string, join?: string): Promise<RealNode> =>
    realNode(t, { lab, home: path.join(root, `real-${name}`), name, join })
  const victim = await start('victim')
  const bob = await start('bob', await victim.invite())
  const member = await lab.join('eve', await victim.invite())
  await member.start()
  const eve = new Eve(member, victim)
  await eve.link()
  await eve.cards(eve.card('operator'), eve.card('eve'))
  const knows = async ({ api }: RealNode, address: string): Promise<boolean> =>
    (await api.call('agents.list', {})).agents.some((one) => one.address === address)
  await eventually(() => knows(victim, 'eve@eve'))
  await eventually(() => knows(bob, 'text@victim'))
  const isServing = async (): Promise<boolean> => {
    const question = { agent: 'text@victim', capability: 'text.stats', input: { text: 'a b' }, timeoutMs: 20_000 }
    return (await bob.api.call('message.call', question)).outcome === 'COMPLETED'
  }
  return { lab, victim, bob, eve, isServing, start }
}

async function realNode(
  t: Assert,
  {
    lab,
    home,
    name,
    join
  }: { readonly lab: Lab; readonly home: string; readonly name: string; readonly join: string | undefined }
): Promise<RealNode> {
  const paths = resolveHome({ home, env: {} })
  const bootstrap = lab.bootstrap.map(({ host, port }) => `${host}:${port}`)
  const values = join === undefined ? { 'network.kind': 'private', 'network.bootstrap': bootstrap } : {}
  const flags = Object.entries(values).map(([flag, value]) => ({ path: flag, flag: `--${flag}`, value }))
  const { config } = await loadConfig({ file: paths.configFile, env: {}, flags })
  const node = await startNode({ config, home: paths, name, join: join ?? null, extraAgentDirs: [], log: null })
  t.teardown(() => node.close())
  const api = node.apiFor({
    kind: 'operator',
    name: 'test',
    tier: 0,
    sandboxId: null,
    scopes: ['read', 'send', 'admin']
  })
  const audit = (): Promise<AuditEvent[]> => auditLines(paths.audit)
  return {
    id: node.info.node.id,
    node,
    api,
    audit,
    invite: async (uses = 1) => (await api.call('invite.create', { trust: 'mine', uses })).code,
    onRecord: async (fits) => {
      let found: AuditEvent | undefined
      await eventually(async () => {
        found = (await audit()).find((line) =>
          Object.entries(fits).every(([key, value]) => line[key as keyof AuditEvent] === value)
        )
        return found !== undefined
      })
      return found as AuditEvent
    },
    counted: async (counter, label) => {
      const { counters } = await api.call('node.metrics', {})
      return counters
        .filter((one) => one.name === counter && (label === undefined || one.label === label))
        .reduce((sum, one) => sum + one.value, 0)
    }
  }
}

async function auditLines(dir: string): Promise<AuditEvent[]> {
  const files = (await fs.readdir(dir)).filter((file) => file.endsWith('.ndjson'))
  const texts = await Promise.all(files.map((file) => fs.readFile(path.join(dir, file), 'utf8')))
  // The last line may be half written.
  return texts.flatMap((text) => text.split('\n').slice(0, -1)).map((line) => JSON.parse(line) as AuditEvent)
}

/** A test that needs a scene may take a while where many run at once. */
export const PATIENT = { timeout: 120_000 }

/** Eve's stream to her victim. */
export function streamOf({ member, victim }: Eve): NoiseStream {
  const streams = [...member.swarm.connections]
  return streams.find((one) => keyToText(one.remotePublicKey) === victim.id) as NoiseStream
}

/** Resolves when the victim has read all that Eve sent: a request that she sends then is at work, or was refused. */
export async function untilRead({ eve, victim }: Scene): Promise<void> {
  const before = await victim.counted('messages_received')
  await eve.send({ type: 'notification', recipient: `operator@${victim.id}`, payload: null })
  await eventually(async () => (await victim.counted('messages_received')) > before)
}
