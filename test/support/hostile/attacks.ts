import { seal } from '../../../src/domain/membership/signing.js'
import { keyToText } from '../../../src/kit/ids.js'
import { cardBody } from '../membership.js'
import { type TestNode, untilTrue } from '../nodes.js'
import type { EvilCalls } from './calls.js'
import { badBlocks } from './log-cores.js'
import { BLOCKS_PER_MEBIBYTE, type HostileMember } from './member.js'
import type { AttackScene } from './scene.js'

/** How much a hostile member does: a little in a test, all in `npm run hostile`. */
export type Size = 'small' | 'full'

/** What a hostile member does once it is prepared. */
export interface Blows {
  /** One more. It may fail, since the member may be cut at any moment. */
  next(): Promise<void>
  /** Resolves when the victim has done what it was to do: else nothing was attacked. */
  took(): Promise<void>
  /** Lets honest nodes be, and resolves when they have done what she asked them for; the next blow ends that. */
  rest?(): Promise<void>
}

/** One way to harm others. */
export interface Attack {
  /** Number in the list of attacks, and what is done. */
  readonly name: string
  /** The member must be one that may write to the log. */
  readonly isAdmin?: true
  /** Honest nodes cut the link of who does that. */
  readonly isCut?: true
  /** Its blocks may be on disk, so a node is started on them again. */
  readonly isKept?: true
  /** What it makes an honest node keep, at most, in MiB. Default: 64. */
  readonly maxDisk?: number
  begin(scene: AttackScene, size: Size): Promise<Blows>
  /**
   * Resolves when honest nodes have given back what the member took, once it is revoked. In the full size it takes 10
   * minutes.
   */
  returned?(scene: AttackScene, size: Size): Promise<void>
}

/** A document of an honest node, whose name comes after all others. */
const HONEST_DOCUMENT = 'zz-plan'
const LARGE_LIST = { historyLength: 10, pageSize: 100 }
const ABANDONED = 'all its writers were revoked, and nobody uses it here'
/** Longer than all that a member may make a node keep is on its way, at the share of a second. */
const FETCHED_MS = 180_000
/** Longer than blocks of a revoked member stay on disk. */
const RETURN_MS = 780_000

/** All that are tried, by a short name. */
export const ATTACKS = {
  strangerBlocks: {
    name: 'A1 bad log blocks of a member without the right to write',
    isKept: true,
    begin: ({ eve }) => Promise.resolve(strangerBlocks(eve))
  },
  hints: {
    name: 'A2 100,000 hints about cores of the log',
    isCut: true,
    begin: ({ eve }) => Promise.resolve(hints(eve))
  },
  streams: { name: 'A3 streams of 50 MiB', maxDisk: 300, begin: streams, returned: streamsReturned },
  log: { name: 'A3 entries of the log, as fast as they are taken', begin: ({ eve }) => Promise.resolve(entries(eve)) },
  names: { name: 'A4 952 documents with names that sort first', begin: names },
  view: { name: 'A5 documents with long access lists', begin: ({ eve }) => Promise.resolve(lists(eve)) },
  unread: { name: 'A6 64 calls with large answers that nobody reads', begin: ({ eve }, size) => unread(eve, size) },
  calls: { name: 'A6 50 calls with large answers a second', begin: ({ eve }, size) => largeCalls(eve, size) },
  patterns: { name: 'A7 inputs that a pattern takes minutes to look at', begin: patterns },
  // The last one: nothing else is taken into the log of who did that.
  writerBlocks: {
    name: 'A1 bad log blocks of a writer',
    isAdmin: true,
    isKept: true,
    begin: (scene) => Promise.resolve(writerBlocks(scene))
  }
} satisfies Record<string, Attack>

function strangerBlocks(eve: HostileMember): Blows {
  let count = 0
  return {
    next: async () => {
      const core = await eve.logCores.core(`stranger-${count++}`)
      await core.append(badBlocks(core))
      eve.logCores.hint([{ key: core.key, length: 2 }])
    },
    took: () => eve.says(eve.card('after'))
  }
}

function writerBlocks({ eve, victim }: AttackScene): Blows {
  let count = 0
  const { log, meshId: mesh } = eve.member.mesh
  return {
    next: async () => {
      const core = await eve.logCores.core(`writer-${count++}`)
      await core.append(badBlocks(core))
      await log.submit({ kind: 'core', mesh, coreKey: keyToText(core.key), serial: count })
      eve.logCores.hint([{ key: core.key, length: 2 }])
    },
    took: async () => {
      const isAside = async (): Promise<boolean> =>
        (await victim.api.call('node.status', {})).problems.some(({ message }) =>
          message.includes('wrote a block of the mesh log that must not be read')
        )
      await untilTrue(isAside, 'her core is set aside')
    }
  }
}

function hints(eve: HostileMember): Blows {
  const { seen } = eve.member
  let count = 0
  const before = seen.closed.length
  return {
    next: async () => {
      await eve.link()
      await eve.logCores.ready()
      eve.logCores.hint(Array.from({ length: 20_000 }, () => ({ key: anyKey(count++), length: 2 ** 40 })))
    },
    took: () => seen.until(() => seen.closed.length > before)
  }
}

function streams({ eve, victim, bob }: AttackScene, size: Size): Promise<Blows> {
  const [total, mebibytes] = size === 'full' ? [8, 50] : [3, 2]
  let count = 0
  let written: string | null = null
  const next = async (): Promise<void> => {
    if (count >= total) return
    const name = `bulk-${count}`
    written ??= await eve.writeStream(name, mebibytes)
    await eve.announce(name, written)
    written = null
    count++
  }
  const isTaken = async (): Promise<boolean> => {
    const { documents } = await victim.api.call('peers.show', { peer: 'eve' })
    return size === 'full'
      ? documents.leftOut > 0 && documents.bytes >= 250 * 1_048_576
      : documents.bytes >= total * mebibytes * 1_048_576
  }
  const areHere = async ({ api }: TestNode): Promise<boolean> =>
    (await api.call('documents.list', {})).documents
      .filter(({ name, following }) => name.startsWith('bulk-') && following)
      .every(({ blocks }) => blocks === mebibytes * BLOCKS_PER_MEBIBYTE)
  // What is still on its way costs honest calls that are to be made without an attack.
  const rest = async (): Promise<void> => {
    for (const node of [victim, bob])
      await untilTrue(() => areHere(node), 'all blocks of the stored documents are here', FETCHED_MS)
  }
  const took = async (): Promise<void> => {
    while (count < total) await next().catch(() => {})
    await untilTrue(isTaken, 'the victim may be made to keep no more')
    await rest()
  }
  return Promise.resolve({ next, took, rest })
}

async function streamsReturned({ victim, bob }: AttackScene, size: Size): Promise<void> {
  for (const { api } of [victim, bob]) {
    const rows = async (): Promise<boolean> =>
      (await api.call('documents.list', {})).documents
        .filter(({ name }) => name.startsWith('bulk-'))
        .every(({ following, left }) => !following && left?.[0]?.reason === ABANDONED)
    await untilTrue(rows, 'her documents are followed no longer')
    if (size === 'small') continue
    const isEmpty = async (): Promise<boolean> => (await api.call('peers.show', { peer: 'eve' })).documents.bytes === 0
    await untilTrue(isEmpty, 'her edits are gone', RETURN_MS)
  }
}

function entries(eve: HostileMember): Blows {
  const { id, mesh } = eve.member
  const wide = Array.from({ length: 14 }, (_, at) => ({
    id: `c.${at}`,
    name: 'c',
    description: 'x'.repeat(4000),
    inputSchema: {},
    outputSchema: {}
  }))
  const shown = (card: string): number => mesh.log.view().cards.get(id)?.get(card)?.body.revision ?? 1
  const first = shown('w0')
  let revision = first
  const isThere = (): boolean => shown('w7') > first
  return {
    next: async () => {
      revision++
      const cards = Array.from({ length: 8 }, (_, at) =>
        seal('card', cardBody(`w${at}`, { revision, capabilities: wide }), { id, sign: mesh.sign })
      )
      await Promise.all(cards.map((card) => eve.says(card)))
    },
    took: async () => {
      if (!isThere()) await new Promise<void>((resolve) => mesh.log.onChange(() => isThere() && resolve()))
    }
  }
}

function names({ eve, bob, victim }: AttackScene, size: Size): Promise<Blows> {
  const total = size === 'full' ? 952 : 60
  let count = 0
  const next = async (): Promise<void> => {
    if (count >= total) return
    await eve.announce(`!${String(count).padStart(4, '0')}`, keyToText(anyKey(count)))
    count++
  }
  const took = async (): Promise<void> => {
    while (count < total) await next().catch(() => {})
    await bob.api.call('documents.create', { name: HONEST_DOCUMENT })
    await bob.api.call('documents.edit', { document: HONEST_DOCUMENT, edit: { type: 'text', text: 'of bob' } })
    const isKept = async (): Promise<boolean> => {
      const { documents } = await victim.api.call('documents.list', {})
      return documents.some(({ name, following, bytes }) => name === HONEST_DOCUMENT && following && bytes > 0)
    }
    await untilTrue(isKept, 'the document of another member is kept')
  }
  return Promise.resolve({ next, took })
}

function lists({ member }: HostileMember): Blows {
  const { log, meshId: mesh } = member.mesh
  const members = Array.from({ length: 256 }, (_, at) => keyToText(new Uint8Array(32).fill(at)))
  const rule = { members, maxTier: null, sandboxes: [], unsandboxed: false }
  let count = log.view().documents.size
  const isThere = (): boolean => log.view().documents.size > 30
  return {
    // What is over the share is refused, and she waits for none.
    next: () => {
      log
        .submit({ kind: 'document', mesh, name: `a${count++}`, access: { see: rule, write: rule, serial: 1 }, at: 1 })
        .catch(() => {})
      return Promise.resolve()
    },
    took: async () => {
      if (!isThere()) await new Promise<void>((resolve) => log.onChange(() => isThere() && resolve()))
    }
  }
}

async function unread(eve: HostileMember, size: Size): Promise<Blows> {
  const calls = await withTasks(eve, size)
  let isStopped = false
  const rest = async (): Promise<void> => {
    calls.go()
    isStopped = false
    await calls.total()
  }
  const next = async (): Promise<void> => {
    if (isStopped) return
    isStopped = true
    calls.stop()
    for (let at = 0; at < 64; at++) await calls.call('ListTasks', LARGE_LIST)
  }
  const took = async (): Promise<void> => {
    const told = eve.untilTold(1_000_000)
    await rest()
    await told
  }
  return { next, rest, took }
}

async function largeCalls(eve: HostileMember, size: Size): Promise<Blows> {
  const calls = await withTasks(eve, size)
  const before = eve.told
  return {
    next: () => calls.call('ListTasks', LARGE_LIST),
    rest: async () => void (await calls.total()),
    took: () => eve.member.seen.until(() => eve.told > before + 1_000_000)
  }
}

/** Calls at a victim that has tasks of hers which make answers large. */
async function withTasks(eve: HostileMember, size: Size): Promise<EvilCalls> {
  const { calls } = eve
  await calls.tasks(size === 'full' ? 170 : 40, 90_000)
  return calls
}

async function patterns({ eve, victim }: AttackScene): Promise<Blows> {
  let count = 0
  const refused = async (): Promise<number> => {
    const { counters } = await victim.api.call('node.metrics', {})
    return counters.find(({ name, label }) => name === 'messages_sent' && label === 'error')?.value ?? 0
  }
  const looked = (): Promise<void> =>
    untilTrue(async () => (await refused()) >= before + count, 'each is looked at and refused')
  const before = await refused()
  return {
    next: () => {
      const input = { name: `${'a'.repeat(36)}!` }
      const payload = {
        requestId: `evil_${eve.count++}`,
        attempt: 1,
        capability: 'hosts.find',
        input,
        description: '',
        swarm: null
      }
      count++
      return eve.send({ recipient: `hosts@${eve.victim.id}`, payload })
    },
    rest: looked,
    took: looked
  }
}

/** A key that no core has, another one for each number. */
function anyKey(number: number): Uint8Array {
  const key = new Uint8Array(32).fill(3)
  new DataView(key.buffer).setUint32(0, number)
  return key
}
