import { spawnSync } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { unifiedDiff } from '../../../src/cli/clients/diff.js'
import { tempDir } from '../../support/tmp.js'

test('a diff shows three lines around the change', (t: Assert) => {
  const want = ['--- f', '+++ f', '@@ -2,7 +2,8 @@', ' 2', ' 3', ' 4', '-5', '+five', '+5.5', ' 6', ' 7', ' 8'].join(
    '\n'
  )
  t.is(unifiedDiff('f', '1\n2\n3\n4\n5\n6\n7\n8\n9\n', '1\n2\n3\n4\nfive\n5.5\n6\n7\n8\n9\n'), want)
  t.is(unifiedDiff('f', null, 'a\n'), '--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a')
  t.is(unifiedDiff('f', 'a', 'a'), '')
  t.is(unifiedDiff('f', null, ''), '', 'a file that is not there and has nothing to get')
  t.is(unifiedDiff('f', 'a', 'a\n'), '--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a')
})

test('a line of a file that is on one line is cut', (t: Assert) => {
  const diff = unifiedDiff('f', 'x'.repeat(100_000), 'y'.repeat(100_000))
  t.ok(diff.length < 5000, `${diff.length} characters`)
})

test('property: patch makes the new file of the old one by the diff', async (t: Assert) => {
  if (spawnSync('patch', ['--version']).error !== undefined) return t.comment('no patch on this machine')
  const dir = await tempDir(t)
  const texts = fc
    .array(fc.constantFrom('a\n', 'b\n', '-- c\n', '\n', 'e\r\n'), { maxLength: 12 })
    .map((all) => all.join(''))
  await fc.assert(
    fc.asyncProperty(texts, texts, fc.boolean(), async (before, after, isCut) => {
      const now = isCut ? after.trimEnd() : after
      const diff = unifiedDiff('f', before, now)
      if (diff === '') return
      await fs.writeFile(path.join(dir, 'f'), before)
      const ran = spawnSync('patch', ['-s', '--binary', 'f'], { cwd: dir, input: `${diff}\n`, encoding: 'utf8' })
      // patch takes away a file that became empty.
      const made = await fs.readFile(path.join(dir, 'f'), 'utf8').catch(() => '')
      if (ran.status !== 0 || made !== now) throw new Error(`${ran.stdout}${JSON.stringify([before, now, made])}`)
    }),
    { numRuns: 100 }
  )
  t.pass('100 changes')
})
