import test, { type Assert } from 'brittle'
import { NodeError } from '../../../src/kit/errors.js'
import { fakeHome, type FakeHome } from '../command-line.js'
import type { SwarmEvent } from '../../../src/ports/swarm-api.js'
import { swarm, swarmEvents } from '../samples.js'

test('when the node stops meanwhile, the output names the nodes where the swarm continues: others that can coordinate it, else here', async (t: Assert) => {
  const coordination = { coordinator: 'laptop', epoch: 1, participants: ['laptop', 'gpu-box', 'desk top'] }
  const { fake, run } = await fakeHome(t, { swarms: [{ ...swarm('running'), coordination }] })
  let isSeated = true
  fake.watch = async function* () {
    if (isSeated) yield { type: 'coordinator', coordinator: 'laptop', epoch: 1, isHere: true } as never
    throw new NodeError('NODE_NOT_RUNNING', 'the node stopped')
  }
  const others = await run(['swarm', 'watch', 'swarm_fake'])
  t.is(others.code, 3)
  t.ok(others.stderr.includes('the swarm goes on at another (gpu-box, desk top)'), others.stderr)
  t.ok(others.stderr.includes('  try: a2a-node swarm watch swarm_fake   # on gpu-box\n'), others.stderr)
  isSeated = false
  const alone = await run(['swarm', 'watch', 'swarm_fake'])
  t.is(alone.code, 3)
  t.ok(alone.stderr.includes('the swarm goes on when the node runs again'), alone.stderr)
})

/** A swarm with these ends of items, which then ends; `untilCanceled`: only after its cancellation. */
async function failing(
  t: Assert,
  statuses: readonly ('completed' | 'failed' | 'unknown')[],
  untilCanceled = false
): Promise<FakeHome> {
  let cancel: () => void = () => {}
  const canceled = new Promise<void>((resolve) => (cancel = resolve))
  const home = await fakeHome(t, {
    swarms: [swarm()],
    calls: { 'swarm.start': () => ({ id: 'swarm_fake' }), 'swarm.cancel': () => (cancel(), swarm('canceled')) }
  })
  const error = new NodeError('TASK_FAILED', 'exit code 3').toBody()
  home.fake.watch = async function* (): AsyncGenerator<SwarmEvent> {
    for (const [index, status] of statuses.entries()) {
      const end = status === 'completed' ? { result: 1, error: null } : { result: null, error }
      yield { type: 'item', item: `${index}`, agent: 'text@b', attempt: 1, status, ...end }
    }
    if (untilCanceled) await canceled
    const done = swarmEvents(untilCanceled ? 'canceled' : 'partial').at(-1)
    if (done !== undefined) yield done
  } as typeof home.fake.watch
  return home
}

test('--fail-fast and --max-failures cancel the swarm once when more items failed, unknown ones too', async (t: Assert) => {
  const run = ['swarm', 'run', 'go', '--capability', 'x']
  const cases = [
    [['--fail-fast'], ['completed', 'failed'], 1],
    [['--fail-fast'], ['completed', 'completed'], 0],
    [['--max-failures', '1'], ['failed', 'completed'], 0],
    [['--max-failures', '1'], ['failed', 'completed', 'unknown', 'failed'], 1],
    [['--max-failures', '0'], ['unknown', 'failed'], 1],
    [[], ['failed', 'failed', 'failed'], 0]
  ] as const
  for (const [flags, statuses, cancels] of cases) {
    const { run: cli, fake, close } = await failing(t, statuses, cancels === 1)
    const { code, stderr } = await cli([...run, ...flags])
    const label = `${flags.join(' ')}: ${statuses.join(', ')}`
    t.is(fake.seen.filter(({ name }) => name === 'swarm.cancel').length, cancels, label)
    t.is(code, cancels === 1 ? 1 : 8, label)
    t.is(stderr.includes('items failed: canceling the swarm'), cancels === 1, label)
    await close()
  }
})

test('limits of failures that nobody would keep, and wrong ones, are USAGE before anything begins', async (t: Assert) => {
  const { run: cli, fake } = await failing(t, [])
  for (const flags of [
    ['--fail-fast', '--max-failures', '1'],
    ['--fail-fast', '--detach'],
    ['--max-failures', '2', '--detach'],
    ['--max-failures', '-1'],
    ['--max-failures', 'many']
  ])
    t.is((await cli(['swarm', 'run', 'go', '--capability', 'x', ...flags])).code, 2, flags.join(' '))
  t.is(fake.seen.length, 0)
})
