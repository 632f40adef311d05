import test from 'brittle'
import { codeOf, runningError, storeError } from '../../../../src/adapters/storage/home/store-errors.js'
import { NodeError } from '../../../../src/kit/errors.js'
import type { ErrorCode } from '../../../../src/kit/errors.js'

function system(code: string): Error {
  return Object.assign(new Error(`${code}: something, open '/x'`), { code })
}

test('errors of the system become the codes people know', (t) => {
  const table: readonly (readonly [string, ErrorCode])[] = [
    ['EACCES', 'NO_PERMISSION'],
    ['EPERM', 'NO_PERMISSION'],
    ['EROFS', 'NO_PERMISSION'],
    ['ENOSPC', 'DISK_FULL'],
    ['EDQUOT', 'DISK_FULL'],
    ['ENAMETOOLONG', 'PATH_TOO_LONG'],
    ['ENOTDIR', 'CONFIG_INVALID'],
    ['EEXIST', 'CONFIG_INVALID'],
    ['EIO', 'STORE_DAMAGED'],
    ['EISDIR', 'STORE_DAMAGED'],
    ['ENOLCK', 'CONFIG_INVALID'],
    ['EOPNOTSUPP', 'CONFIG_INVALID'],
    ['toString', 'INTERNAL']
  ]
  for (const [code, expected] of table) {
    const error = storeError(system(code), '/home/me/node')
    t.is(error.code, expected, code)
    if (expected !== 'INTERNAL') t.ok(error.message.includes('/home/me/node'), error.message)
    if (expected !== 'INTERNAL') t.ok(error.next.length > 0)
  }
})

test('errors of the store engine, which have no code, are recognized by their text', (t) => {
  const table: readonly (readonly [string, ErrorCode])[] = [
    ['IO error: No space left on device: While appending to file', 'DISK_FULL'],
    ['IO error: Permission denied: /x/LOCK', 'NO_PERMISSION'],
    ['Corruption: block checksum mismatch', 'STORE_DAMAGED'],
    ['Invalid device file, was modified', 'STORE_DAMAGED'],
    ['Another corestore is stored here', 'STORE_DAMAGED'],
    ['Something new', 'INTERNAL']
  ]
  for (const [words, expected] of table) t.is(storeError(new Error(words), '/s').code, expected, words)
})

test('a taken lock of the store engine is STORE_LOCKED', (t) => {
  for (const words of [
    'File descriptor could not be locked',
    'IO error: While lock file: /s/db/LOCK: Resource temporarily unavailable'
  ]) {
    t.is(storeError(new Error(words), '/s').code, 'STORE_LOCKED')
  }
})

test('a NodeError passes unchanged, the cause of others is kept', (t) => {
  const error = new NodeError('TIMEOUT', 'late')
  t.is(storeError(error, '/s'), error)
  const cause = system('ENOSPC')
  t.is(storeError(cause, '/s').cause, cause)
})

test('the error of a second node names pid and socket of the first', (t) => {
  const error = runningError({ pid: 4242, startedAt: 1, socket: '/tmp/control.sock' })
  t.is(error.code, 'ALREADY_RUNNING')
  t.alike(error.data, { pid: 4242, socket: '/tmp/control.sock' })
  t.ok(error.message.includes('4242'))
})

test('the code of an error is a text or nothing', (t) => {
  t.is(codeOf(system('ENOENT')), 'ENOENT')
  for (const other of [null, undefined, 'ENOENT', new Error('m'), { code: 7 }]) t.is(codeOf(other), null)
})
