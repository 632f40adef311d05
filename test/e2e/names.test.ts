import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { localMesh, untilOnline, untilTrue, type LocalNode } from '../support/nodes.js'

test('the first node keeps its name; newcomers of the same name get a longer one, and messages reach the node that was meant', async (t) => {
  const mesh = await localMesh(t)
  const owner = await mesh.start('laptop')
  const { code } = await owner.api.call('invite.create', { trust: 'mine', uses: 3 })
  const others: LocalNode[] = []
  for (let i = 0; i < 3; i++) {
    others.push(await mesh.start('laptop', { join: code, home: `${await mesh.dir()}/other-${i}` }))
    await untilOnline(owner, i + 1)
  }
  t.is((await owner.api.call('node.id', {})).node.name, 'laptop', 'the owner is still called so')
  const names = (await owner.api.call('peers.list', {})).peers.map((one) => one.name)
  for (const other of others)
    t.ok(names.includes(`laptop-${other.info.node.id.slice(0, 4)}`), 'a newcomer has a distinct name')
  for (const other of others) {
    const { agent, payload } = await other.json<{ agent: string; payload: unknown }>([
      'call',
      'text@laptop',
      'text.stats',
      '{"text":"x"}'
    ])
    t.is(agent, 'text@laptop')
    t.ok(payload)
    t.is((await other.api.call('peers.show', { peer: 'laptop' })).id, owner.info.node.id, 'laptop is the owner')
  }
})

test('a node that is named to be taken for another is refused at its start, or by the admin of the mesh', async (t) => {
  const mesh = await localMesh(t)
  const owner = await mesh.start('ape')
  const hidden = await owner.cli(['start', '--home', `${await mesh.dir()}/hidden`, '--name', 'a\u3164pe'])
  t.is(hidden.code, 2)
  t.ok(hidden.stderr.includes('U+3164 at character 2 is invisible'), hidden.stderr)
  const { code } = await owner.api.call('invite.create', { trust: 'mine' })
  const home = `${await mesh.dir()}/alike`
  const alike = await owner.cli(['start', '--home', home, '--join', code, '--name', 'аре'])
  t.is(alike.code, 4)
  t.ok(
    alike.stderr.includes('looks like the name of another member') &&
      alike.stderr.includes('start --join - --name <name>'),
    alike.stderr
  )
  t.alike((await owner.api.call('peers.list', {})).peers, [], 'nobody was let in')
  const other = await mesh.start('Пётр', { join: code, home })
  t.is(other.info.node.name, 'Пётр', 'the invite is still good')
})

test('a node that is in a mesh keeps its name; another one at its start is not taken without a word', async (t) => {
  const mesh = await localMesh(t)
  const one = await mesh.start('one')
  const running = await one.cli(['start', '--name', 'two', '--json'])
  t.is((JSON.parse(running.stdout) as { node: { name: string } }).node.name, 'one')
  t.ok(running.stderr.includes('is called one, not two'), running.stderr)
  await one.stop()
  const two = await mesh.start('two', { home: one.home })
  t.is(two.info.node.name, 'one')
  await untilTrue(() => two.errors().includes('is called one, not two'), 'the node says so')
  t.ok((await fs.readFile(path.join(one.home, 'node.json'), 'utf8')).includes('"one"'), 'its home says so too')
  const [, words = ''] = /a2a-node (?:--home \S+ )?(peers rename .*) <name>/.exec(two.errors()) ?? []
  t.is((await two.cli([...words.split(' '), 'two'])).code, 0, 'the hint works')
  t.is((await two.api.call('node.id', {})).node.name, 'two')
})

test('without waiting, a request to a node that is away is queued at once, shown so, and done when it is back', async (t) => {
  const mesh = await localMesh(t)
  const [a, b] = await mesh.meshOf('a', 'b')
  await b.stop()
  const queued = await a.json<{ outcome: string; taskId: string; latencyMs: number }>([
    'call',
    'text@b',
    'text.stats',
    '{"text":"one two"}',
    '--no-wait'
  ])
  t.is(queued.outcome, 'QUEUED')
  const short = await a.cli(['send', 'text@b', 'hi', '--no-wait', '--timeout', '2s', '--json'])
  t.is(short.code, 0, short.stderr)
  const task = await a.json<{ state: string; waitingFor: string }>(['tasks', 'show', queued.taskId])
  t.alike({ state: task.state, waitingFor: task.waitingFor }, { state: 'submitted', waitingFor: 'peer' })
  await mesh.start('b', { home: b.home })
  for await (const { tasks } of a.api.watch('tasks.list', {})) {
    if (tasks.find((one) => one.id === queued.taskId)?.state === 'completed') break
  }
  const done = await a.json<{ state: string; result: { words: number } }>(['tasks', 'show', queued.taskId])
  t.is(done.result.words, 2)
})
