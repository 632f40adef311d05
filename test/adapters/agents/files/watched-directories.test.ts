import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { WatchedDirectories } from '../../../../src/adapters/agents/files/watched-directories.js'
import { eventually } from '../../../support/agents/eventually.js'
import { realClock } from '../../../support/agents/real-clock.js'
import { tempDir } from '../../../support/tmp.js'

test('changes are reported before and after a directory was away, and not after the end', async (t: Assert) => {
  const dir = path.join(await tempDir(t), 'agents')
  let changes = 0
  const watched = new WatchedDirectories({
    dirs: [dir],
    clock: realClock,
    onChange: () => void changes++,
    onError: (error) => t.fail(String(error))
  })
  t.teardown(() => watched.close())
  for (const round of [1, 2]) {
    let before = changes
    await fs.mkdir(dir)
    await eventually(() => changes > before)
    before = changes
    await fs.writeFile(path.join(dir, `${round}.md`), 'text')
    await eventually(() => changes > before)
    before = changes
    await fs.rm(dir, { recursive: true })
    await eventually(() => changes > before)
  }
  await watched.close()
  const before = changes
  await fs.mkdir(dir)
  t.is(changes, before)
})
