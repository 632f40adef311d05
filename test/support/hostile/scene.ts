import fs from 'node:fs/promises'
import path from 'node:path'
import { meshLab } from '../../adapters/mesh/lab.js'
import { type TestMesh, testMesh, type TestNode, untilAgent, untilOnline } from '../nodes.js'
import type { Teardown } from '../tmp.js'
import { HostileMember } from './member.js'

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
  readonly eve: HostileMember
  /** Stops the victim and starts it again on what it holds. */
  restart(): Promise<TestNode>
}

/**
 * Sets the scene; everything is gone when the test ends. `isAdmin`: the member may invite, and so write to the log.
 * Default: false.
 */
export async function attackScene(
  t: Teardown,
  { isAdmin = false }: { readonly isAdmin?: boolean } = {}
): Promise<AttackScene> {
  const lab = await meshLab(t)
  const mesh = await testMesh(t)
  const home = path.join(await mesh.dir(), 'victim')
  await fs.mkdir(path.join(home, 'agents'), { recursive: true, mode: 0o700 })
  await fs.writeFile(path.join(home, 'agents', 'hosts.md'), HOSTS)
  const bootstrap = lab.bootstrap.map(({ host, port }) => `${host}:${port}`)
  await fs.writeFile(
    path.join(home, 'config.yaml'),
    `network: { kind: private, bootstrap: ${JSON.stringify(bootstrap)} }\n`
  )
  const env = { A2A_NODE_NETWORK_KIND: undefined, A2A_NODE_LOCAL_PORT: undefined }
  const victim = await mesh.start('victim', { home, env })
  const invite = async (admin: boolean): Promise<string> =>
    (await victim.api.call('invite.create', { trust: 'mine', admin })).code
  const bob = await mesh.start('bob', { join: await invite(false), env })
  const eve = await HostileMember.join(t, lab, { code: await invite(isAdmin), victim: victim.info.node.id })
  await eve.cards(eve.card('operator'), eve.card('eve'))
  await untilAgent(bob, 'text@victim')
  await untilOnline(victim, 2)
  const restart = async (): Promise<TestNode> => {
    await victim.stop()
    return await mesh.start('victim', { home, env })
  }
  return { mesh, victim, bob, eve, restart }
}

/** What an honest node takes. */
export interface Taken {
  /** The most memory since its process began, in MiB. */
  readonly memory: number
  /** Of its home on disk, in MiB. */
  readonly disk: number
}

/** What that honest node takes that takes most. */
export async function takenBy({ victim, bob }: Pick<AttackScene, 'victim' | 'bob'>): Promise<Taken> {
  const all = await Promise.all(
    [victim, bob].map(async (node) => ({ memory: await memoryOf(node), disk: await bytesOf(node.home) }))
  )
  const most = (what: keyof Taken): number => Math.round(Math.max(...all.map((one) => one[what])) / 1_048_576)
  return { memory: most('memory'), disk: most('disk') }
}

async function memoryOf({ process: { pid } }: TestNode): Promise<number> {
  const status = await fs.readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024
}

async function bytesOf(dir: string): Promise<number> {
  let bytes = 0
  for (const entry of await fs.readdir(dir, { withFileTypes: true, recursive: true })) {
    const stat = entry.isFile() ? await fs.stat(path.join(entry.parentPath, entry.name)).catch(() => null) : null
    // What is not written yet does not count: stores make sparse files, and take room ahead.
    if (stat !== null) bytes += Math.min(stat.size, stat.blocks * 512)
  }
  return bytes
}
