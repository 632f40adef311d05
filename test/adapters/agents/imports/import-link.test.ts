import test, { type Assert } from 'brittle'
import { ImportLink } from '../../../../src/adapters/agents/imports/import-link.js'
import { LIST_TIMEOUT_MS, WORDS } from '../../../../src/adapters/mcp/imported/imported-server.js'
import type { LinkState } from '../../../../src/domain/pinning/link-state.js'
import type { ImportConnection } from '../../../../src/ports/imports.js'
import { ManualClock } from '../../../support/manual-clock.js'

const TTL_MS = 300_000

/** A link to a server that lists its tools at once, or only when it is told to. */
class Scene {
  readonly clock = new ManualClock()
  readonly states: LinkState['phase'][] = []
  closed = 0
  lists = 0
  isDeaf = false
  readonly link = new ImportLink({
    adapter: { open: () => Promise.resolve(this.#connection), listTimeoutMs: LIST_TIMEOUT_MS, words: WORDS },
    clock: this.clock,
    chance: () => 0.5,
    ttlMs: TTL_MS,
    onList: () => Promise.resolve(),
    onState: ({ phase }) => void this.states.push(phase)
  })
  readonly #connection: ImportConnection = {
    list: (signal) => {
      this.lists++
      if (!this.isDeaf) return Promise.resolve([])
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    },
    close: () => Promise.resolve(void this.closed++)
  }

  static async ready(): Promise<Scene> {
    const scene = new Scene()
    scene.link.input({ type: 'start' })
    await scene.pass(1)
    return scene
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      this.clock.advance(Math.min(500, left))
      for (let turn = 0; turn < 8; turn++) await Promise.resolve()
    }
  }
}

test('a server that does not list while it works at a call keeps its connection; once nothing it had before is under way it has failed', async (t: Assert) => {
  const scene = await Scene.ready()
  t.is(scene.link.state.phase, 'ready')
  const end = scene.link.calling()
  scene.isDeaf = true
  await scene.pass(TTL_MS + 10 * LIST_TIMEOUT_MS)
  t.is(scene.link.state.phase, 'ready')
  t.is(scene.closed, 0, 'the call goes on')
  t.ok(scene.lists > 3, `it is asked again and again: ${scene.lists} times`)
  // A call that began after the list was asked for proves nothing.
  const endLater = scene.link.calling()
  end()
  await scene.pass(2 * LIST_TIMEOUT_MS)
  t.is(scene.closed, 1)
  t.not(scene.link.state.phase, 'ready')
  endLater()
  await scene.link.close()
})

test('a busy server whose list comes in the end is listed, and has the same patience the next time', async (t: Assert) => {
  const scene = await Scene.ready()
  const end = scene.link.calling()
  scene.isDeaf = true
  await scene.pass(TTL_MS + 2 * LIST_TIMEOUT_MS)
  scene.isDeaf = false
  await scene.pass(2 * LIST_TIMEOUT_MS)
  t.alike([scene.link.state.isListing, scene.link.state.isDirty, scene.closed], [false, false, 0])
  end()
  const endOfNext = scene.link.calling()
  scene.isDeaf = true
  await scene.pass(TTL_MS + 2 * LIST_TIMEOUT_MS)
  t.is(scene.closed, 0)
  endOfNext()
  await scene.link.close()
})
