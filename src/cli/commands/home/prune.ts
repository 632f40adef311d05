import process from 'node:process'
import { NodeError } from '../../../kit/errors.js'
import { shellWord } from '../../../kit/text.js'
import type { UnusedPart } from '../../../maintenance/installed-size.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isSet } from '../../options.js'
import { ownRoot } from '../../start/own-package.js'
import { agreed } from '../../terminal/agreed.js'
import type { Output } from '../../terminal/output.js'
import { plural, printTable } from '../../terminal/render.js'
import { bytesText } from '../../words.js'

/** Rows of packages; smaller ones are counted together. */
const MAX_ROWS = 8

const AGREEMENT = { question: 'remove them?' }

/** `prune`: removes the parts of the installed packages that this machine never uses. */
export const prune: Action = async ({ output }, _args, options) => {
  const root = ownRoot()
  const { removeUnused, unusedParts } = await import('../../../maintenance/installed-size.js')
  const parts = await unusedParts(root, process)
  const bytes = parts.reduce((sum, one) => sum + one.bytes, 0)
  if (!output.json) await printParts(output, parts)
  const isRemoved = parts.length > 0 && !isSet(options, 'dryRun') && (await agreed(output, options, AGREEMENT))
  if (isRemoved) await removeUnused(parts).catch((error: unknown) => Promise.reject(notRemoved(error, root)))
  const packages = parts.map(({ name, dir, paths, bytes: size }) => ({ name, dir, paths: paths.length, bytes: size }))
  if (output.json) output.object('prune@1', { root, packages, bytes, removed: isRemoved })
  else if (isRemoved) output.print(`removed ${bytesText(bytes)} below ${root}`)
  else if (parts.length > 0) output.print(`nothing was removed; ${bytesText(bytes)} can be: a2a-node prune --yes`)
  return EXIT.ok
}

async function printParts(output: Output, parts: readonly UnusedPart[]): Promise<void> {
  if (parts.length === 0)
    return output.print('nothing to remove: no binaries for other platforms or runtimes, no source maps')
  const rows = parts.slice(0, MAX_ROWS).map(({ name, bytes }) => [name, bytesText(bytes)])
  await printTable(output, ['PACKAGE', 'UNUSED'], rows)
  const rest = parts.length - rows.length
  if (rest > 0) output.print(`and ${plural(rest, 'smaller one')}`)
  output.note('Unused are binaries for other platforms and runtimes, and source maps. npm install brings them back.')
}

function notRemoved(error: unknown, root: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error
  return new NodeError('NO_PERMISSION', `files below ${root} belong to another user, or may not change`, {
    next: [`ls -ld ${shellWord(root)}`, 'sudo a2a-node prune --yes'],
    cause: error
  })
}
