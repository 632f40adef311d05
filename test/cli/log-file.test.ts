import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'

const MODULE = new URL('../../src/cli/log-file.js', import.meta.url).href

/** Runs code with `reopenLog` in a process of its own. */
function ran(code: string): { readonly status: number | null; readonly stderr: string } {
  const script = `import { reopenLog } from ${JSON.stringify(MODULE)}\n${code}`
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
}

test('output goes to the new file of that name, and back to no other after the next rotation', async (t: Assert) => {
  const log = path.join(await tempDir(t), 'node.log')
  const { status, stderr } = ran(`
    import fs from 'node:fs'
    for (const line of ['one', 'two']) {
      reopenLog(${JSON.stringify(log)})
      console.log(line)
      console.error(line)
      fs.renameSync(${JSON.stringify(log)}, ${JSON.stringify(log)} + '.' + line)
    }`)
  t.is(status, 0, stderr)
  for (const line of ['one', 'two']) t.is(await fs.readFile(`${log}.${line}`, 'utf8'), `${line}\n${line}\n`)
})

test('a log that takes nothing, or cannot be opened, stops no process', {
  skip: process.platform !== 'linux'
}, (t: Assert) => {
  for (const file of ['/dev/full', '/dev/null/none']) {
    const { status, stderr } = ran(`
      reopenLog(${JSON.stringify(file)})
      process.stderr.write('lost')
      process.stdout.write('lost', () => process.exit(7))`)
    t.is(status, 7, stderr)
  }
})
