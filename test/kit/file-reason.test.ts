import fs from 'node:fs'
import path from 'node:path'
import test from 'brittle'
import { fileReason } from '../../src/kit/file-reason.js'
import { tempDir } from '../support/tmp.js'

function reasonOf(read: () => unknown): string {
  try {
    read()
    return 'read'
  } catch (error) {
    return fileReason(error)
  }
}

test('the reason why a file cannot be read is given in plain words, any other error by its own message', async (t) => {
  const dir = await tempDir(t)
  const file = path.join(dir, 'file')
  fs.writeFileSync(file, '')
  t.is(
    reasonOf(() => fs.readFileSync(path.join(dir, 'none'))),
    'there is no such file'
  )
  t.is(
    reasonOf(() => fs.readFileSync(path.join(file, 'below'))),
    'there is no such file'
  )
  t.is(
    reasonOf(() => fs.readFileSync(dir)),
    'it is a directory'
  )
  t.is(fileReason(Object.assign(new Error('EACCES'), { code: 'EACCES' })), 'this user has no permission')
  t.is(fileReason(Object.assign(new Error('odd'), { code: 'toString' })), 'odd')
  t.is(fileReason(null), 'null')
})
