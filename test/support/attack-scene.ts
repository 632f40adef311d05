import fs from 'node:fs/promises'
import path from 'node:path'
import type { Assert } from 'brittle'
import type { NoiseStream } from 'hyperswarm'
import { encodeCall, type CallPart } from '../../src/domain/channel/call.js'
import { keyToText, utf8 } from '../../src/kit/ids.js'
import { meshLab } from '../adapters/mesh/lab.js'
import { Eve } from './hostile.js'
import { type TestMesh, testMesh, type TestNode, untilAgent, untilOnline } from './nodes.js'

/** An agent whose input is checked by a pattern that backtracks. */
const HOSTS = `---
name: hosts
description: Knows hosts.
a2a:
  capabilities:
    - id: hosts.find
      idempotent: true
      sideEffect: none
      input:
        type: object
        properties:
          name: { type: string, pattern: '^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])+\\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9-]*[A-Za-z0-9])$' }
  runtime: { type: command, command: [cat] }
---
`

/** Two honest nodes in processes of their own, and a hostile member in this one. */
export interface AttackScene {
  readonly mesh: TestMesh
  readonly victim: TestNode
  readonly bob: TestNode
  readonly eve: Eve
}

/** Sets the scene; everything is gone when the test ends. */
export async function attackScene(t: Assert): Promise<AttackScene> {
  const lab = await meshLab(t)
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'victim')
  await fs.mkdir(path.join(home, 'agents'), { recursive: true, mode: 0o700 })
  await fs.writeFile(path.join(home, 'agents', 'hosts.md'), HOSTS)
  const bootstrap = lab.bootstrap.map(({ host, port }) => `${host}:${port}`)
  await fs.writeFile(path.join(home, 'config.yaml'), `network: { kind: private, bootstrap: ${JSON.stringify(bootstrap)} }\n`)
  const env = { A2A_NODE_NETWORK_KIND: undefined, A2A_NODE_LOCAL_PORT: undefined }
  const victim = await mesh.start('victim', { home, env })
  const invite = async (): Promise<string> => (await victim.api.call('invite.create', {})).code
  const bob = await mesh.start('bob', { join: await invite(), env })
  const member = await lab.join('eve', await invite())
  await member.start()
  const eve = new Eve(member, { id: victim.info.node.id })
  await eve.link()
  await eve.cards(eve.card('operator'), eve.card('eve'))
  await untilAgent(bob, 'text@victim')
  await untilOnline(victim, 2)
  return { mesh, victim, bob, eve }
}

/** How the honest nodes do meanwhile. */
export interface Figures {
  /** Of calls of one honest node at the other, one after the other, in milliseconds. */
  readonly p50: number
  readonly p99: number
  /** The most memory of an honest node, in MiB. */
  readonly rss: number
  /** The most disk that the home of an honest node takes, in MiB. */
  readonly disk: number
}

/** Makes so many calls from honest node to honest node, and looks at what all costs them. `before`: done before each call. */
export async function figuresOf({ victim, bob }: AttackScene, calls: number, before?: () => Promise<void>): Promise<Figures> {
  const took: number[] = []
  let rss = 0
  while (took.length < calls) {
    await before?.()
    const from = performance.now()
    const { outcome } = await bob.api.call('message.call', { agent: 'text@victim', capability: 'text.stats', input: { text: 'a b' } })
    if (outcome !== 'COMPLETED') throw new Error(`an honest call ended ${outcome}`)
    took.push(performance.now() - from)
    if (took.length % 10 === 0) rss = Math.max(rss, ...(await Promise.all([victim, bob].map(memoryOf))))
  }
  const disk = Math.max(...(await Promise.all([victim, bob].map(({ home }) => bytesOf(home)))))
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10
  return { p50: at(0.5), p99: at(0.99), rss: Math.round(rss / 1_048_576), disk: Math.round(disk / 1_048_576) }
}

async function memoryOf({ process: { pid } }: TestNode): Promise<number> {
  const status = await fs.readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024
}

async function bytesOf(dir: string): Promise<number> {
  let bytes = 0
  for (const entry of await fs.readdir(dir, { withFileTypes: true, recursive: true })) {
    const stat = entry.isFile() ? await fs.stat(path.join(entry.parentPath, entry.name)).catch(() => null) : null
    // What is not written takes no room: stores make sparse files.
    bytes += (stat?.blocks ?? 0) * 512
  }
  return bytes
}

/** Calls of the A2A protocol that Eve makes at her victim, over her link and by her own rules. */
export class EvilCalls {
  readonly #eve: Eve
  #id = 0
  #stream: NoiseStream | null = null

  constructor(eve: Eve) {
    this.#eve = eve
  }

  /** Sends a call; what is answered is not looked at. */
  async call(method: string, params: object): Promise<void> {
    const id = ++this.#id
    const body = utf8(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    const part: CallPart = { type: 'request', id, path: '/agents/text', parameters: {}, body }
    await this.#eve.message({ kind: 'call', bytes: encodeCall(part) })
  }

  /** Makes tasks at the victim, each with a message of so many characters. Resolves when it has at least as many. */
  async tasks(count: number, length: number): Promise<void> {
    // A member has 64 calls open at most: what is beyond is refused.
    for (let total = 0; total < count; total = await this.#total())
      for (let at = 0; at < 32; at++) {
        const message = { messageId: `evil_${this.#id}`, role: 'ROLE_USER', parts: [{ text: 'x'.repeat(length) }] }
        await this.call('SendStreamingMessage', { message })
      }
  }

  /** How many tasks the victim says that it has. */
  async #total(): Promise<number> {
    const { seen } = this.#eve.member
    const from = seen.frames.length
    await this.call('ListTasks', { pageSize: 1 })
    await seen.until(() => this.#totalIn(from) !== null)
    return this.#totalIn(from) ?? 0
  }

  #totalIn(from: number): number | null {
    for (const { frame } of this.#eve.member.seen.frames.slice(from)) {
      const [, total] = /"totalSize":(\d+)/.exec(Buffer.from(frame).toString('latin1')) ?? []
      if (total !== undefined) return Number(total)
    }
    return null
  }

  /** Reads nothing more of the stream to the victim, until told. */
  stop(): void {
    const { member, victim } = this.#eve
    const streams = [...member.mesh.links.swarm.connections]
    const stream = streams.find((one) => keyToText(one.remotePublicKey) === victim.id)
    if (stream === undefined) throw new Error('she has no stream to the victim')
    this.#stream = stream
    stream.pause()
  }

  /** Reads on; what was sent meanwhile then comes. */
  go(): void {
    this.#stream?.resume()
  }
}
