import test from 'brittle'
import { Abort } from '../../src/kit/abort.js'
import { capability } from '../support/fake-agents.js'
import { World } from '../support/fake-node.js'
import { forge, forgeControl, request } from '../support/forge.js'

test('every listener is called once, for any errors of the others', (t) => {
  const thrown: unknown[] = []
  const abort = new Abort((error) => thrown.push(error))
  const called: number[] = []
  const fault = new Error('a bug of a program')
  abort.addEventListener('abort', () => {
    called.push(1)
    throw fault
  })
  abort.addEventListener('abort', () => called.push(2))
  abort.abort()
  abort.abort()
  t.alike([called, thrown, abort.aborted], [[1, 2], [fault], true])
})

test('a program that throws when its run is stopped costs neither the peer that stops it nor the node anything', async (t) => {
  const world = new World(t)
  const here = await world.member('here')
  const peer = await world.member('peer')
  await world.link(here, peer)
  await here.core.attach({
    id: 'text',
    capabilities: [capability('text.do')],
    run: (_task, { signal }) =>
      new Promise(() =>
        signal.addEventListener('abort', () => {
          throw new Error('a bug of the program')
        })
      )
  })
  await world.settle()
  forge(peer, here, { payload: request('r1'), metadata: { tier: 1 } })
  await world.settle()
  forgeControl(peer, here, { name: 'cancel', body: { requestId: 'r1#1' } })
  await world.settle()
  t.alike(here.links.faults, [])
  t.is(here.links.open.length, 1)
  forge(peer, here, { payload: request('r2', { swarm: 's1' }), metadata: { tier: 1 } })
  await world.settle()
  for (const link of [...peer.links.open]) link.close('gone')
  await world.settle()
  // The lease ends by a timer.
  await t.execution(world.pass(8000))
})
