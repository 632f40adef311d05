import test from 'brittle'
import { Simulation } from './simulation.js'
import { Witness } from './witness.js'
import { Trace } from './trace.js'
import { faultOf, traceOf } from './worlds.js'

test('the same seed gives the same world, byte for byte; another seed another one', async (t) => {
  for (const seed of [3, 77, 4711]) {
    const first = await traceOf(seed)
    t.ok(first.split('\n').length > 20)
    t.ok((await traceOf(seed)) === first, `world ${seed} is the same`)
    t.ok((await traceOf(seed + 1)) !== first, `world ${seed + 1} is another`)
  }
})

test('worlds have what they are there for: runs, ends, crashes, cut links, full disks and jumps', async (t) => {
  const texts: string[] = []
  for (let seed = 1; seed <= 60; seed++) texts.push(await traceOf(seed))
  const all = texts.join('\n')
  for (const what of [
    'begins req_',
    'ends req_',
    'is killed',
    'has stopped',
    'is cut',
    'stalls',
    'cannot reach',
    'its disk is full',
    'disk refuses',
    'wall clock',
    'cancels ask',
    'run 2',
    'of the caller is completed',
    'of the caller is failed',
    'of the caller is unknown'
  ])
    t.ok(all.includes(what), what)
})

test('a witness says when a request runs twice at once or against its word, when an acknowledgement exceeds the disk, and when an end changes', (t) => {
  const witness = new Witness(new Trace(() => 0))
  const task = {
    taskId: 'task_1',
    requestId: 'req_1',
    attempt: 1,
    capability: 'slow.once',
    description: '',
    input: { ask: 1, mayRepeat: false }
  }
  witness.begins('a', task)
  witness.begins('a', task)
  witness.acknowledges('a', 'x@b>y@a', 1)
  const told = { id: 'task_1', role: 'caller', state: 'completed', result: 1 }
  witness.tells('b', told as Parameters<Witness['tells']>[1])
  witness.tells('b', { ...told, state: 'failed' } as Parameters<Witness['tells']>[1])
  t.alike(witness.faults, [
    'req_1 runs twice at once',
    'req_1 may not be repeated, and is',
    'a acknowledges 1 of x@b>y@a, and its disk has 0',
    'task task_1 at b was completed 1, and is failed null'
  ])
})

test('a world asks what it is made to ask', async (t) => {
  let asked = 0
  for (let seed = 1; seed <= 20; seed++) asked += (await new Simulation(seed).run()).asked
  t.ok(asked > 40, `${asked} requests in 20 worlds`)
})

test('a world in which a wall clock is put back by 42 minutes while a request has no outcome comes to its end', async (t) => {
  t.is(await faultOf(1735), null)
})
