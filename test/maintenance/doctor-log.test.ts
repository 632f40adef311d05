import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { type RunningNode } from '../../src/compose/compose.js'
import { repairHome } from '../../src/maintenance/doctor-stores.js'
import { diagnoseHome } from '../../src/maintenance/doctor.js'
import { apiOf, localNodes } from '../support/local-nodes.js'
import { asNodeError } from '../../src/kit/errors.js'
import { untilTrue } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

async function names(node: RunningNode): Promise<string[]> {
  return (await apiOf(node).call('documents.list', {})).documents.map(({ name }) => name)
}

async function problems(node: RunningNode): Promise<string[]> {
  return (await apiOf(node).call('node.status', {})).problems.map(({ code, next }) => `${code} ${next}`)
}

/** What somebody who asks in one of many ways is told of the log. */
async function logProblems(node: RunningNode): Promise<Record<string, string[]>> {
  const api = apiOf(node)
  const codes = (result: { readonly problems: readonly { readonly code: string }[] }): string[] =>
    result.problems.map(({ code }) => code)
  const failure = (asked: Promise<unknown>): Promise<string[]> =>
    asked.then(
      () => [],
      (error: unknown) => {
        const { code, message, next } = asNodeError(error)
        return [
          code,
          /the mesh log on this disk lost entries|the log of the mesh is not on this disk/.exec(message)?.[0] ?? '',
          ...next
        ]
      }
    )
  return {
    peers: codes(await api.call('peers.list', {})),
    documents: codes(await api.call('documents.list', {})),
    agents: codes(await api.call('agents.list', {})),
    own: codes(await api.call('agents.list', { origin: 'local' })),
    invites: codes(await api.call('invite.list', {})),
    settings: codes(await api.call('mesh.settings', {})),
    document: await failure(api.call('documents.read', { document: 'notes', type: 'text' })),
    watched: await failure(first(api.watch('documents.read', { document: 'notes', type: 'text' }))),
    peer: await failure(api.call('peers.show', { peer: 'a' })),
    agent: await failure(api.call('agents.show', { agent: 'x@a' })),
    swarm: await failure(
      api.call('swarm.start', { capability: 'x.y', goal: 'g', strategy: 'map', items: [{ item: '1', input: 1 }] })
    )
  }
}

async function first<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item
  return undefined
}

/** What {@link logProblems} gives when each answer tells of that problem. */
function everywhere(code: string, message: string, next: string): Record<string, string[]> {
  const lists = ['peers', 'documents', 'agents', 'invites', 'settings'].map((name) => [name, [code]])
  const failures = [
    ['document', 'DOCUMENT_NOT_FOUND'],
    ['watched', 'DOCUMENT_NOT_FOUND'],
    ['peer', 'PEER_NOT_FOUND'],
    ['agent', 'AGENT_NOT_FOUND'],
    ['swarm', 'NO_CAPABLE_AGENT']
  ] as const
  return Object.fromEntries([
    ...lists,
    ['own', []],
    ...failures.map(([name, failure]) => [name, [failure, message, next]])
  ])
}

test('a member that writes no log, and whose store lost a part of it, says so until others have given it; a repair fetches it anew', async (t) => {
  const { start, homeOf, optionsOf } = await localNodes(t)
  const [a, home] = [await start('a'), homeOf('b')]
  const { code: join } = await apiOf(a).call('invite.create', {})
  await (await start('b', { join })).close()
  const [db, old] = [path.join(home.store, 'db'), path.join(await tempDir(t), 'db')]
  const putBack = async (): Promise<void> => {
    await fs.rm(home.store, { recursive: true })
    await fs.cp(old, db, { recursive: true })
  }
  await fs.cp(db, old, { recursive: true })
  const marked = async (): Promise<string> =>
    await fs.readFile(path.join(home.home, 'log-marks.json'), 'utf8').catch(() => '')
  const before = await marked()
  const b = await start('b')
  await apiOf(a).call('documents.create', { name: 'notes' })
  await untilTrue(
    async () => (await names(b)).includes('notes') && (await marked()) !== before,
    'the log is here, and its mark'
  )
  await Promise.all([a.close(), b.close()])

  await putBack()
  const alone = await start('b')
  t.alike(
    [await names(alone), await problems(alone)],
    [[], ['STORE_DAMAGED a2a-node stop && a2a-node doctor --repair']]
  )
  t.alike(
    await logProblems(alone),
    everywhere('STORE_DAMAGED', 'the mesh log on this disk lost entries', 'a2a-node stop && a2a-node doctor --repair'),
    'for each missing thing there is the reason why it may be there'
  )
  const again = await start('a')
  await untilTrue(
    async () => (await names(alone)).includes('notes') && (await problems(alone)).length === 0,
    'it was given'
  )
  await Promise.all([again.close(), alone.close()])

  await putBack()
  const { config } = await optionsOf('b', {})
  const checks = await diagnoseHome({ home, config, now: Date.now() })
  t.alike(
    checks.filter(({ result }) => result === 'fail').map(({ name }) => name),
    ['store']
  )
  t.alike(
    (await repairHome(home, Date.now())).map(({ name }) => name),
    ['store']
  )
  t.is(
    (await diagnoseHome({ home, config, now: Date.now() })).find(({ name }) => name === 'store')?.result,
    'warn',
    'there is no log yet'
  )
  const repaired = await start('b')
  t.alike(
    await problems(repaired),
    ['PEER_OFFLINE a2a-node start   # on another machine of the mesh'],
    'it knows of nothing before it meets a member'
  )
  t.alike(
    await logProblems(repaired),
    everywhere(
      'PEER_OFFLINE',
      'the log of the mesh is not on this disk',
      'a2a-node start   # on another machine of the mesh'
    ),
    'also of a log that is not here'
  )
  await start('a')
  t.is(repaired.info.node.id, b.info.node.id)
  await untilTrue(async () => (await names(repaired)).includes('notes'), 'the log came anew')
  t.alike(await problems(repaired), [])
  t.alike((await apiOf(repaired).call('documents.list', {})).problems, [])
})
