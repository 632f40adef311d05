import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { isRunning } from '../support/agents/eventually.js'
import { BIN, ROOT, untilTrue } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'

/** An `npm` without a registry: it puts the program of this tree in its place. */
const NPM = `#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/bin" && ln -s "${BIN}" "$2/bin/a2a-node"
`

test('the measurement of the first answer leaves no node and no file behind at Ctrl-C', async (t) => {
  const dir = await tempDir(t)
  const [bin, tmp] = [path.join(dir, 'bin'), path.join(dir, 'tmp')]
  await Promise.all([fs.mkdir(bin), fs.mkdir(tmp)])
  await fs.writeFile(path.join(bin, 'npm'), NPM, { mode: 0o755 })
  const child = spawn(process.execPath, [path.join(ROOT, 'scripts', 'first-answer.mjs'), BIN], {
    env: { ...process.env, PATH: `${bin}:${path.dirname(process.execPath)}:${process.env['PATH']}`, TMPDIR: tmp },
    stdio: ['ignore', 'ignore', 'pipe']
  })
  t.teardown(() => child.kill('SIGKILL'))
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close')
  let pid = 0
  await untilTrue(async () => {
    if (child.exitCode !== null) throw new Error(`it ended before a node ran: ${errors}`)
    pid = await pidBelow(tmp)
    return pid > 0
  }, 'a node runs')
  t.teardown(() => isRunning(pid) && process.kill(pid, 'SIGKILL'))
  child.kill('SIGINT')
  t.is((await ended)[0], 130)
  t.alike(await fs.readdir(tmp), [])
  t.absent(isRunning(pid), 'its node has ended')
})

/** The process of a node whose home lies somewhere below; 0 for none yet. */
async function pidBelow(dir: string): Promise<number> {
  const names = await fs.readdir(dir, { recursive: true }).catch(() => [])
  const file = names.find((name) => path.basename(name) === 'node.pid')
  if (file === undefined) return 0
  const text = await fs.readFile(path.join(dir, file), 'utf8').catch(() => '{}')
  return (JSON.parse(text) as { pid?: number }).pid ?? 0
}
