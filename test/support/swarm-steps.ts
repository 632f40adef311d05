import fc from 'fast-check'
import type { SwarmScene } from './swarm-scene.js'

/** What happens to a swarm under way. */
export type SwarmStep =
  /** Of the runs under way one ends by itself. */
  | { readonly type: 'end'; readonly which: number; readonly status: 'completed' | 'failed' }
  | { readonly type: 'kill'; readonly commits: number; readonly isWritten: boolean }
  | { readonly type: 'crash' | 'restart' | 'link' }
  | { readonly type: 'worker' | 'unlink'; readonly which: number }
  | { readonly type: 'pass'; readonly ms: number }

/** Anything that may happen to a swarm under way. */
export const arbSwarmStep: fc.Arbitrary<SwarmStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('end' as const),
      which: fc.nat(7),
      status: fc.constant('completed' as const)
    })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('end' as const),
      which: fc.nat(7),
      status: fc.constant('failed' as const)
    })
  },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('kill' as const), commits: fc.nat(6), isWritten: fc.boolean() })
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('crash' as const, 'restart' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('link' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constantFrom('worker' as const, 'unlink' as const), which: fc.nat(1) })
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.constantFrom(500, 2000, 6000, 12_000) })
  }
)

/** Makes it happen. */
export async function performSwarmStep(scene: SwarmScene, step: SwarmStep): Promise<void> {
  const worker = 'which' in step ? scene.workers[step.which % scene.workers.length] : undefined
  if (step.type === 'end') {
    const open = scene.open()
    const run = open[step.which % Math.max(1, open.length)]
    if (run !== undefined) scene.end(run, step.status)
  }
  if (step.type === 'kill') scene.killIn(step.commits, step.isWritten)
  if (step.type === 'crash') await scene.crash()
  if (step.type === 'restart') await scene.restart()
  if (step.type === 'link') {
    await scene.revive()
    await scene.link()
  }
  if (step.type === 'worker' && worker !== undefined) await scene.crashWorker(worker)
  if (step.type === 'unlink' && worker !== undefined) await scene.unlink(worker)
  if (step.type === 'pass') await scene.world.pass(step.ms, 500)
  await scene.world.settle()
}
